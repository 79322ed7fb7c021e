/* The ids of documents, as `pretrain-data tokenize` writes them: what the tokenizer's template puts
 * in front of a text, the text, what it puts behind, and the end-of-document token unless that is
 * there already. */
#ifndef CONVERT_DOCUMENT_IDS_H
#define CONVERT_DOCUMENT_IDS_H
#include "text/encoder.h"

struct document_ids {    /* read-only, shared by threads */
    struct tokenizer *t; /* NULL: bytes */
    char *json;          /* [bytes], not owned */
    size_t bytes;
    int64_t vocab_size, eod;
    int end; /* append eod */
};

/* tokenizer: "bytes", or the path of a tokenizer.json, whose bytes become *json (mem_give it). */
enum status document_ids_read(const char *tokenizer, char **json, size_t *bytes,
                              struct err *e) LOCAL;
/* eod: a token's content; NULL: the template's last, or a usual name. E_FILE: the file; E_INPUT: no
 * such token, or none known. */
enum status document_ids_open(struct document_ids *x, const char *tokenizer, char *json,
                              size_t bytes, const char *eod, struct err *e) LOCAL;
void document_ids_close(struct document_ids *x) LOCAL;

struct document_encoder; /* of one thread */
/* specials_as_text: their names in a text are only text (with "bytes" they always are). */
struct document_encoder *document_encoder_open(const struct document_ids *x,
                                               int specials_as_text) LOCAL;
void document_encoder_close(struct document_encoder *c) LOCAL; /* NULL is fine */
/* Appends the ids of a part of a document, UTF-8; first and last: it is its begin, its end. */
enum status document_encoder_add(struct document_encoder *c, const char *text, size_t n, int first,
                                 int last, struct ids *to, struct err *e) LOCAL;
/* Special tokens that texts named so far. */
int64_t document_encoder_specials(const struct document_encoder *c) LOCAL;
#endif
