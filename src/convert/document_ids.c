#include "convert/document_ids.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "text/byte_tokenizer.h"

enum { TOKENIZER_MAX = 256 << 20 };

/* ---- the tokenizer ---- */

static int is_bytes(const char *tokenizer)
{
    return strcmp(tokenizer, "bytes") == 0;
}

enum status document_ids_read(const char *tokenizer, char **json, size_t *bytes, struct err *e)
{
    *json = NULL;
    *bytes = 0;
    if (!is_bytes(tokenizer))
        return file_read_text(tokenizer, TOKENIZER_MAX, json, bytes, e);
    *json = mem_copy_text(byte_tokenizer_json());
    *bytes = strlen(*json);
    return OK;
}

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

enum status document_ids_open(struct document_ids *x, const char *tokenizer, char *json,
                              size_t bytes, const char *eod, struct err *e)
{
    enum status st;

    *x = (struct document_ids){
        .json = json, .bytes = bytes, .vocab_size = BYTE_VOCAB, .eod = BYTE_EOD, .end = 1
    };
    if (is_bytes(tokenizer))
        return eod && strcmp(eod, "<|endoftext|>") != 0
                   ? err_set(e, E_INPUT, "--eod '%s': the end token of `bytes` is <|endoftext|>",
                             eod)
                   : OK;
    if ((st = tokenizer_open(&x->t, json, bytes, e)) != OK) {
        err_prefix(e, "%s", tokenizer);
        return st;
    }
    x->vocab_size = tokenizer_vocab_size(x->t);
    return find_end(x, tokenizer, eod, e);
}

void document_ids_close(struct document_ids *x)
{
    tokenizer_close(x->t);
    x->t = NULL;
}

/* ---- documents ---- */

struct document_encoder {
    const struct document_ids *x;
    struct encoder *encoder; /* NULL: bytes */
};

struct document_encoder *document_encoder_open(const struct document_ids *x, int specials_as_text)
{
    struct document_encoder *c = mem_take(sizeof *c);

    c->x = x;
    if (x->t) {
        c->encoder = encoder_open(x->t);
        encoder_set_specials_as_text(c->encoder, specials_as_text);
    }
    return c;
}

void document_encoder_close(struct document_encoder *c)
{
    if (!c)
        return;
    encoder_close(c->encoder);
    mem_give(c);
}

static void add_bytes(struct ids *to, const char *text, size_t n)
{
    if (n > to->room - to->n)
        ids_grow(to, n);
    for (size_t i = 0; i < n; i++)
        to->at[to->n + i] = (unsigned char)text[i];
    to->n += n;
}

enum status document_encoder_add(struct document_encoder *c, const char *text, size_t n, int first,
                                 int last, struct ids *to, struct err *e)
{
    enum status st = OK;

    if (c->encoder)
        st = encoder_part(c->encoder, text, n, first, last, to, e);
    else
        add_bytes(to, text, n);
    if (st == OK && last && c->x->end)
        ids_add(to, (uint32_t)c->x->eod);
    return st;
}

int64_t document_encoder_specials(const struct document_encoder *c)
{
    return c->encoder ? encoder_specials_found(c->encoder) : 0;
}
