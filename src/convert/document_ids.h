/* The ids of documents, as `pretrain-data tokenize` writes them: what the tokenizer's template puts
 * in front of a text, the text, what it puts behind, and the end-of-document token unless that is
 * there already. */
#ifndef CONVERT_DOCUMENT_IDS_H
#define CONVERT_DOCUMENT_IDS_H
#include "data/tokens.h"

struct document_ids; /* of one thread */

/* tokenizer: "bytes" or the path of a tokenizer.json. eod: a token's content; NULL: the template's
 * last, or a usual name. specials_as_text: their names in a text are only text (with "bytes" they
 * always are). E_FILE: the file; E_INPUT: no such token, or none known. */
enum status document_ids_open(struct document_ids **x, const char *tokenizer, const char *eod,
                              int specials_as_text, struct err *e) LOCAL;
void document_ids_close(struct document_ids *x) LOCAL; /* NULL is fine */
enum status document_ids_writer(const struct document_ids *x, struct tokens_writer **w,
                                const char *path, struct err *e) LOCAL;
/* text: UTF-8, a whole document. Memory is bounded. */
enum status document_ids_add(struct document_ids *x, struct tokens_writer *w, const char *text,
                             size_t n, struct err *e) LOCAL;
/* Special tokens that texts named so far. */
int64_t document_ids_specials(const struct document_ids *x) LOCAL;
#endif
