/* Token files: HDF5 outside, one mapped array inside. doc/checkpoint.md describes the format. */
#ifndef DATA_TOKENS_H
#define DATA_TOKENS_H
#include "base/dtype.h"
#include "base/err.h"
#include "base/hash.h"

struct tokens { /* one open file, read-only, mapped */
    char path[4096];
    const void *data; /* uint16 or uint32 [count] */
    enum dtype dtype;
    int64_t count;
    const int64_t *documents; /* first token of each document, ascending, documents[0] = 0 */
    int64_t ndocuments;
    int64_t vocab_size, eod;    /* eod -1: none */
    const char *tokenizer_json; /* NULL: none; not 0-terminated */
    size_t tokenizer_bytes;
    char hash[33]; /* XXH3-128 of the tokens' bytes, as stored */
    void *map, *owned; /* private */
    size_t map_bytes;
};

/* Checks the header, sizes against the file, dtype, documents ascending and inside; not the tokens
 * themselves. E_FILE: what is wrong and what to do ("run `pretrain-data check`", "this looks like a
 * Megatron .bin: use pretrain-data import"). */
enum status tokens_open(struct tokens *t, const char *path, struct err *e) LOCAL;
void tokens_close(struct tokens *t) LOCAL;
/* ids first .. first+n-1; an id >= vocab_size is E_FILE with its position. */
enum status tokens_read(const struct tokens *t, int64_t first, int64_t n, int32_t *ids,
                        struct err *e) LOCAL;
/* The document that token `at` belongs to (binary search), and its first token. */
int64_t tokens_document(const struct tokens *t, int64_t at) LOCAL;
int64_t tokens_document_start(const struct tokens *t, int64_t at) LOCAL;
/* Everything: hash, ids, documents. */
enum status tokens_check(const struct tokens *t, struct err *e) LOCAL;

/* One pass, bounded memory; the file appears under its name only when it is complete. */
struct tokens_writer;
enum status tokens_writer_open(struct tokens_writer **w, const char *path, int64_t vocab_size,
                               int64_t eod, const char *tokenizer_json, size_t tokenizer_bytes,
                               struct err *e) LOCAL;
enum status tokens_writer_add(struct tokens_writer *w, const uint32_t *ids, int64_t n,
                              struct err *e) LOCAL;
/* The next token starts a document. */
void tokens_writer_document(struct tokens_writer *w) LOCAL;
/* Everything but the rename, so that several files can be committed together. No token: E_FILE. */
enum status tokens_writer_finish(struct tokens_writer *w, struct err *e) LOCAL;
/* Commits; frees w, also on failure. */
enum status tokens_writer_close(struct tokens_writer *w, struct err *e) LOCAL;
void tokens_writer_cancel(struct tokens_writer *w) LOCAL; /* NULL is fine */
int64_t tokens_writer_count(const struct tokens_writer *w) LOCAL; /* tokens so far */
#endif
