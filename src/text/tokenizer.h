/* A tokenizer of the BPE families, from the bytes of its tokenizer.json: ids as the `tokenizers`
 * library gives them; or of a SentencePiece model: ids of that library. Read-only once open, shared
 * by threads; encoder.h and decoder.h use it. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H
#include "base/err.h"

struct tokenizer;

/* Pure: no files, no state. The bytes are a tokenizer.json or a SentencePiece .model: the first
 * byte tells; a model's template puts its <s> in front, if it has one. E_FILE names the part that
 * is wrong or not supported, by its place in the file (the caller puts the path in front); then *t
 * is NULL. */
enum status tokenizer_open(struct tokenizer **t, const void *bytes, size_t n, struct err *e) LOCAL;
/* The same from a rank file of tiktoken (lines of base64, a space and the rank, which is the id)
 * and the encoding it belongs to: gpt2, cl100k, o200k, qwen. Its special tokens are not in the
 * file; of them there is <|endoftext|>. E_INPUT: another name. */
enum status tokenizer_open_ranks(struct tokenizer **t, const void *bytes, size_t n,
                                 const char *encoding, struct err *e) LOCAL;
/* Do the bytes look like a SentencePiece model? */
int tokenizer_is_model(const void *bytes, size_t n) LOCAL;
void tokenizer_close(struct tokenizer *t) LOCAL; /* NULL is fine */

uint32_t tokenizer_vocab_size(const struct tokenizer *t) LOCAL; /* largest id + 1 */
/* By content, as the file spells it; -1: no such token. */
int64_t tokenizer_id(const struct tokenizer *t, const char *content, size_t n) LOCAL;
/* The content; NULL: no such id. */
const char *tokenizer_text(const struct tokenizer *t, uint32_t id, size_t *n) LOCAL;
int tokenizer_is_special(const struct tokenizer *t, uint32_t id) LOCAL;
/* The id that ends a document: the last that the template puts behind a text, else a special token
 * with one of the usual names; -1: none. And the first in front of a text. */
int64_t tokenizer_end_of_document(const struct tokenizer *t) LOCAL;
int64_t tokenizer_begin_of_text(const struct tokenizer *t) LOCAL;
/* How many ids the template puts in front of a text and behind it. */
void tokenizer_template(const struct tokenizer *t, size_t *front, size_t *back) LOCAL;
/* The last place in from + 1 .. n - 1 where a text, of which these n bytes are a part, can be cut
 * so that encoder_part() gives the ids of the whole; 0: none is seen. The text need not be UTF-8.
 */
size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n, size_t from) LOCAL;
/* One line for the user. */
void tokenizer_describe(const struct tokenizer *t, char *text, size_t bytes) LOCAL;
/* "PCRE2 10.42, utf8proc 2.8.0; Unicode 16.0" */
const char *tokenizer_libraries(void) LOCAL;
#endif
