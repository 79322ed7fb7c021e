/* Token files: ours (HDF5 outside, one mapped array inside; doc/checkpoint.md describes it) and
 * those of other programs, as they are. */
#ifndef DATA_TOKENS_H
#define DATA_TOKENS_H
#include "base/dtype.h"
#include "base/err.h"
#include "base/hash.h"

/* What a user says of files that do not say it themselves. */
struct tokens_stated {
    int dtype;   /* enum dtype of a raw stream; -1: not stated */
    int64_t eod; /* -1: not stated */
};

struct tokens_map {
    const void *at;
    size_t bytes;
};

struct tokens { /* one open file, read-only, mapped */
    char path[4096];
    const char *format; /* "token file", "Megatron", "datatrove", "llm.c", "raw" */
    const void *data;   /* of dtype [count], perhaps not aligned */
    enum dtype dtype;   /* U8, U16, U32, I32, I64 */
    int64_t count;
    int64_t ndocuments;         /* 0: the format lists none */
    int64_t vocab_size;         /* 0: the format does not say it */
    int64_t eod;                /* -1: none, or not said */
    int64_t limit;              /* ids are below: vocab_size, or what tokens_limit() said */
    const char *tokenizer_json; /* NULL: none; not 0-terminated */
    size_t tokenizer_bytes;
    /* Of our format: XXH3-128 of the tokens' bytes, as stored. Of the others: tokens_foreign.h. */
    char hash[33];
    struct tokens_map map,
        index;                  /* private: the file, and the one beside it that lists documents */
    const char *list, *offsets; /* documents' starts as the format has them */
    int64_t nsequences;         /* Megatron */
    int64_t (*first)(const struct tokens *t, int64_t d);
};

/* Checks headers, sizes against the files, dtype and a sample of the list of documents; not the
 * tokens themselves. The format is told by the first bytes (ours, llm.c), by a file beside
 * (Megatron: NAME.bin with NAME.idx; datatrove: NAME with NAME.index), or is a raw stream of the
 * stated type. stated NULL: nothing. E_FILE: what is wrong and what to do. */
enum status tokens_open_as(struct tokens *t, const char *path, const struct tokens_stated *stated,
                           struct err *e) LOCAL;
enum status tokens_open(struct tokens *t, const char *path, struct err *e) LOCAL;
void tokens_close(struct tokens *t) LOCAL;
/* The model has rows for ids below vocab_size only. */
void tokens_limit(struct tokens *t, int64_t vocab_size) LOCAL;
/* ids first .. first+n-1; an id that is not below t->limit is E_FILE with its position. */
enum status tokens_read(const struct tokens *t, int64_t first, int64_t n, int32_t *ids,
                        struct err *e) LOCAL;
/* The system may read these tokens now: they are needed soon. */
void tokens_will_need(const struct tokens *t, int64_t first, int64_t n) LOCAL;
/* First token of document d; of d = ndocuments: count. A damaged list gives any number. */
int64_t tokens_first(const struct tokens *t, int64_t d) LOCAL;
/* The document that token `at` belongs to (binary search), and its first token; ndocuments > 0. */
int64_t tokens_document(const struct tokens *t, int64_t at) LOCAL;
int64_t tokens_document_start(const struct tokens *t, int64_t at) LOCAL;
/* Blocks of ids all over the file, bounded in time: E_FILE for one that is not below the limit. */
enum status tokens_sample(const struct tokens *t, struct err *e) LOCAL;
/* Everything: hash, ids (*largest), documents. */
enum status tokens_check(const struct tokens *t, int64_t *largest, struct err *e) LOCAL;

/* One pass, bounded memory; the file appears under its name only when it is complete. */
struct tokens_writer;
enum status tokens_writer_open(struct tokens_writer **w, const char *path, int64_t vocab_size,
                               int64_t eod, const char *tokenizer_json, size_t tokenizer_bytes,
                               struct err *e) LOCAL;
enum status tokens_writer_add(struct tokens_writer *w, const uint32_t *ids, int64_t n,
                              struct err *e) LOCAL;
/* The next token starts a document. */
void tokens_writer_document(struct tokens_writer *w) LOCAL;
/* For a writer whose work outlives the process: tokens are in PATH.part, documents in
 * PATH.part-documents, until it is closed or cancelled. from: a mark that tokens_writer_sync()
 * gave, {0}: the beginning. E_FILE: what is there does not reach the mark, or another process
 * writes. */
struct tokens_head {
    const char *path;
    int64_t vocab_size, eod;
    const char *tokenizer_json;
    size_t tokenizer_bytes;
};
struct tokens_mark {
    int64_t tokens, documents;
};
enum status tokens_writer_open_at(struct tokens_writer **w, const struct tokens_head *h,
                                  const struct tokens_mark *from, struct err *e) LOCAL;
/* All so far is on disk; *mark: so far. */
enum status tokens_writer_sync(struct tokens_writer *w, struct tokens_mark *mark,
                               struct err *e) LOCAL;
struct tokens_mark tokens_writer_mark(const struct tokens_writer *w) LOCAL; /* on disk or not */
void tokens_writer_leave(struct tokens_writer *w) LOCAL; /* frees, keeps the files */
/* PATH.KIND, own: and the process's number; a name near the limit of 255 bytes is shortened, and
 * kept apart from others by its hash. */
void tokens_name_beside(char *out, size_t room, const char *path, const char *kind, int own) LOCAL;
enum dtype tokens_writer_dtype(int64_t vocab_size) LOCAL;
/* Tokens that are of that type already, and below the vocabulary's size. */
enum status tokens_writer_stored(struct tokens_writer *w, const void *tokens, int64_t n,
                                 struct err *e) LOCAL;
/* Everything but the rename, so that several files can be committed together. No token: E_FILE. */
enum status tokens_writer_finish(struct tokens_writer *w, struct err *e) LOCAL;
/* Commits; frees w, also on failure. */
enum status tokens_writer_close(struct tokens_writer *w, struct err *e) LOCAL;
void tokens_writer_cancel(struct tokens_writer *w) LOCAL;         /* NULL is fine */
int64_t tokens_writer_count(const struct tokens_writer *w) LOCAL; /* tokens so far */
#endif
