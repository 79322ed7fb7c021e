/* What a worker makes of a batch: the ids of its documents. */
#ifndef CONVERT_ENCODE_BATCH_H
#define CONVERT_ENCODE_BATCH_H
#include "convert/batches.h"
#include "convert/document_ids.h"

struct encode_how {
    const struct document_ids *x;
    const char *field; /* of JSON lines */
    int specials_as_text;
    int replace; /* what is not UTF-8 becomes U+FFFD; else it is E_FILE */
    int hash;    /* of every document's text; not of parts */
};

struct encoded_document {
    int64_t tokens;
    uint64_t hash[2];
};
struct encoded_head {
    int64_t status;
    int64_t ndocuments, ntokens;
    int64_t blank, specials, replaced; /* empty lines, special tokens named, U+FFFD put */
};
struct encoded {
    struct encoded_head h;
    struct encoded_document *document;  /* [h.ndocuments] */
    void *tokens;                       /* [h.ntokens] of tokens_writer_dtype() */
    size_t documents_room, tokens_room; /* in bytes */
    struct err e; /* of a status: the message behind the path, ": why" or ":LINE: why" */
};
/* Room for what the head says. */
void encoded_room(struct encoded *r) LOCAL;
void encoded_free(struct encoded *r) LOCAL;

struct encode; /* a thread's */
struct encode *encode_open(const struct encode_how *how) LOCAL;
/* Fills *r, zeroed before the first use. */
void encode_run(struct encode *w, const struct batch_head *h, const char *text,
                struct encoded *r) LOCAL;
void encode_close(struct encode *w) LOCAL;
#endif
