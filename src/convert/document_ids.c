#include "convert/document_ids.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "text/byte_tokenizer.h"
#include "text/encoder.h"

enum { PIECE = 1 << 16, TOKENIZER_MAX = 256 << 20 };

struct document_ids {
    struct tokenizer *t; /* NULL: bytes */
    struct encoder *encoder;
    char *json;
    size_t bytes;
    int64_t eod;
    int end;       /* append eod */
    uint32_t *ids; /* [PIECE], of bytes */
};

static enum status find_end(struct document_ids *x, const char *path, const char *eod,
                            struct err *e)
{
    int64_t own = tokenizer_end_of_document(x->t);
    size_t front, back;

    x->eod = eod ? tokenizer_id(x->t, eod, strlen(eod)) : own;
    if (eod && x->eod < 0)
        return err_set(e, E_INPUT, "--eod '%s': %s has no such token", eod, path);
    if (x->eod < 0)
        return err_set(e, E_INPUT,
                       "%s: no token is known to end a document: name one with --eod TOKEN", path);
    tokenizer_template(x->t, &front, &back);
    x->end = back == 0 || x->eod != own;
    return OK;
}

static enum status open_file(struct document_ids *x, const char *path, const char *eod,
                             int specials_as_text, struct err *e)
{
    enum status st = file_read_text(path, TOKENIZER_MAX, &x->json, &x->bytes, e);

    if (st != OK)
        return st;
    if ((st = tokenizer_open(&x->t, x->json, x->bytes, e)) != OK) {
        err_prefix(e, "%s", path);
        return st;
    }
    x->encoder = encoder_open(x->t);
    encoder_set_specials_as_text(x->encoder, specials_as_text);
    return find_end(x, path, eod, e);
}

enum status document_ids_open(struct document_ids **x, const char *tokenizer, const char *eod,
                              int specials_as_text, struct err *e)
{
    struct document_ids *new = mem_take(sizeof *new);
    enum status st = OK;

    if (strcmp(tokenizer, "bytes") == 0) {
        new->eod = BYTE_EOD;
        new->end = 1;
        new->ids = mem_take(PIECE * sizeof *new->ids);
        if (eod && strcmp(eod, "<|endoftext|>") != 0)
            st = err_set(e, E_INPUT, "--eod '%s': the end token of `bytes` is <|endoftext|>", eod);
    } else {
        st = open_file(new, tokenizer, eod, specials_as_text, e);
    }
    if (st != OK) {
        document_ids_close(new);
        new = NULL;
    }
    *x = new;
    return st;
}

void document_ids_close(struct document_ids *x)
{
    if (!x)
        return;
    encoder_close(x->encoder);
    tokenizer_close(x->t);
    mem_give(x->json);
    mem_give(x->ids);
    mem_give(x);
}

enum status document_ids_writer(const struct document_ids *x, struct tokens_writer **w,
                                const char *path, struct err *e)
{
    const char *json = x->t ? x->json : byte_tokenizer_json();

    return tokens_writer_open(w, path, x->t ? tokenizer_vocab_size(x->t) : BYTE_VOCAB, x->eod, json,
                              x->t ? x->bytes : strlen(json), e);
}

static enum status to_writer(void *to, const uint32_t *ids, size_t n, struct err *e)
{
    return tokens_writer_add(to, ids, (int64_t)n, e);
}

static enum status add_bytes(struct document_ids *x, struct tokens_writer *w, const char *text,
                             size_t n, struct err *e)
{
    enum status st = OK;

    for (size_t at = 0; at < n && st == OK; at += PIECE) {
        size_t k = n - at < PIECE ? n - at : PIECE;

        for (size_t i = 0; i < k; i++)
            x->ids[i] = (unsigned char)text[at + i];
        st = tokens_writer_add(w, x->ids, (int64_t)k, e);
    }
    return st;
}

enum status document_ids_add(struct document_ids *x, struct tokens_writer *w, const char *text,
                             size_t n, struct err *e)
{
    uint32_t end = (uint32_t)x->eod;
    enum status st;

    tokens_writer_document(w);
    st = x->t ? encoder_stream(x->encoder, text, n, 1, to_writer, w, e)
              : add_bytes(x, w, text, n, e);
    return st == OK && x->end ? tokens_writer_add(w, &end, 1, e) : st;
}

int64_t document_ids_specials(const struct document_ids *x)
{
    return x->t ? encoder_specials_found(x->encoder) : 0;
}
