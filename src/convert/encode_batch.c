#include "convert/encode_batch.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "convert/json_field.h"
#include "convert/jsonl.h"
#include "data/tokens.h"
#include "text/utf8.h"

#define KEPT ((size_t)8 << 20) /* bytes of a buffer that stay for the next batch */
#define CURE "convert the file (iconv), or take U+FFFD for it with --invalid-utf8 replace"

struct encode {
    struct encode_how how;
    struct document_encoder *encoder;
    struct ids ids;
    struct buffer clean; /* the batch with U+FFFD */
    struct buffer field; /* of a JSON line, without escapes */
    struct encoded *r;
};

struct encode *encode_open(const struct encode_how *how)
{
    struct encode *w = mem_take(sizeof *w);

    w->how = *how;
    w->encoder = document_encoder_open(how->x, how->specials_as_text);
    return w;
}

void encode_close(struct encode *w)
{
    if (!w)
        return;
    document_encoder_close(w->encoder);
    ids_free(&w->ids);
    buffer_free(&w->clean);
    buffer_free(&w->field);
    mem_give(w);
}

static void *room_for(void *p, size_t *room, size_t n)
{
    size_t more = n > *room ? n + n / 4 + 4096 : *room;

    if (*room > KEPT && n <= KEPT) {
        mem_give(p);
        p = NULL;
        more = n;
        *room = 0;
    }
    if (more > *room)
        p = mem_grow(p, *room, more);
    *room = more;
    return p;
}

void encoded_room(struct encoded *r)
{
    r->document =
        room_for(r->document, &r->documents_room, (size_t)r->h.ndocuments * sizeof *r->document);
    r->tokens = room_for(r->tokens, &r->tokens_room, (size_t)r->h.ntokens * sizeof(uint32_t));
}

void encoded_free(struct encoded *r)
{
    mem_give(r->document);
    mem_give(r->tokens);
    *r = (struct encoded){ .tokens = NULL };
}

/* ---- documents ---- */

static enum status add_document(struct encode *w, const char *text, size_t n, int first, int last,
                                struct err *e)
{
    struct encoded *r = w->r;
    struct encoded_document *d;
    size_t before = w->ids.n, need = (size_t)(r->h.ndocuments + 1) * sizeof *d;
    enum status st = document_encoder_add(w->encoder, text, n, first, last, &w->ids, e);

    if (need > r->documents_room)
        r->document = room_for(r->document, &r->documents_room, need);
    d = &r->document[r->h.ndocuments++];
    *d = (struct encoded_document){ .tokens = (int64_t)(w->ids.n - before) };
    if (w->how.hash && first && last)
        hash_pair(text, n, d->hash);
    return st;
}

static enum status check_text(const struct batch_head *h, const char *text, size_t n, struct err *e)
{
    struct utf8_check u = { 0 };

    if (utf8_check_add(&u, text, n))
        return err_set(e, E_FILE, ": not UTF-8 at byte %lld (0x%02x); " CURE,
                       (long long)(h->at + u.at) + 1, (unsigned char)text[u.at]);
    if (!utf8_check_end(&u))
        return OK;
    return h->last ? err_set(e, E_FILE, ": not UTF-8: the last character is cut; " CURE)
                   : err_set(e, E_FILE, ": not UTF-8 at byte %lld; " CURE,
                             (long long)(h->at + u.at) + 1);
}

static enum status add_text(struct encode *w, const struct batch_head *h, const char *text,
                            size_t n, struct err *e)
{
    enum status st = check_text(h, text, n, e);

    if (st == OK && (st = add_document(w, text, n, h->first != 0, h->last != 0, e)) != OK)
        err_prefix(e, " behind byte %lld", (long long)h->at);
    return st;
}

static enum status add_line(struct encode *w, int64_t number, const char *line, size_t n,
                            struct err *e)
{
    struct utf8_check u = { 0 };
    enum status st;

    if (n && line[n - 1] == '\r')
        n--;
    if (n == 0) {
        w->r->h.blank++;
        return OK;
    }
    if (utf8_check_add(&u, line, n) || utf8_check_end(&u))
        return err_set(e, E_FILE, ":%lld: not UTF-8 at byte %lld of the line; " CURE,
                       (long long)number, (long long)u.at + 1);
    if ((st = add_document(w, line, n, 1, 1, e)) != OK)
        err_prefix(e, ":%lld", (long long)number);
    return st;
}

static enum status add_json(struct encode *w, int64_t number, const char *line, size_t n,
                            struct err *e)
{
    struct jsonl_line at = { "", w->how.field, number };
    struct utf8_check u = { 0 };
    json_t *value = NULL;
    const char *text;
    size_t bytes;
    enum status st = OK;

    if (jsonl_is_blank(line, n))
        return OK;
    if (utf8_check_add(&u, line, n) || utf8_check_end(&u) ||
        !json_field(line, n, at.field, &w->field, &text, &bytes)) {
        st = jsonl_parse(&value, &at, line, n, e);
        if (st == OK)
            st = jsonl_field(value, &at, &text, &bytes, e);
    }
    if (st == OK && (st = add_document(w, text, bytes, 1, 1, e)) != OK)
        err_prefix(e, ":%lld", (long long)number);
    json_decref(value);
    return st;
}

static enum status add_lines(struct encode *w, const struct batch_head *h, const char *text,
                             size_t n, struct err *e)
{
    int64_t number = h->lines;
    enum status st = OK;

    if (h->at == 0 && h->format == INPUT_JSONL)
        jsonl_pass_mark(&text, &n);
    for (const char *end = text + n, *next; text < end && st == OK; text = next) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t k = (size_t)((newline ? newline : end) - text);

        next = newline ? newline + 1 : end;
        number++;
        st = h->format == INPUT_JSONL ? add_json(w, number, text, k, e)
                                      : add_line(w, number, text, k, e);
    }
    return st;
}

/* ---- the whole ---- */

static void clean(struct encode *w, const char **text, size_t *n)
{
    struct utf8_check u = { 0 };

    if (!utf8_check_add(&u, *text, *n) && !utf8_check_end(&u))
        return;
    w->clean.n = 0;
    if (3 * *n > w->clean.room)
        buffer_grow(&w->clean, 3 * *n);
    *n = utf8_replace(w->clean.at, *text, *n, &w->r->h.replaced);
    *text = w->clean.at;
}

static void store(struct encode *w)
{
    struct encoded *r = w->r;
    uint16_t *small;

    r->h.ntokens = (int64_t)w->ids.n;
    encoded_room(r);
    small = r->tokens;
    if (tokens_writer_dtype(w->how.x->vocab_size) == U16)
        for (size_t i = 0; i < w->ids.n; i++)
            small[i] = (uint16_t)w->ids.at[i];
    else if (w->ids.n)
        memcpy(r->tokens, w->ids.at, w->ids.n * sizeof *w->ids.at);
    if (w->ids.room * sizeof *w->ids.at > KEPT)
        ids_free(&w->ids);
    if (w->clean.room > KEPT)
        buffer_free(&w->clean);
    if (w->field.room > KEPT)
        buffer_free(&w->field);
}

void encode_run(struct encode *w, const struct batch_head *h, const char *text, struct encoded *r)
{
    int64_t specials = document_encoder_specials(w->encoder);
    size_t n = (size_t)h->n;
    enum status st;

    w->r = r;
    w->ids.n = 0;
    r->h = (struct encoded_head){ .status = OK };
    r->e.text[0] = 0;
    if (w->how.replace)
        clean(w, &text, &n);
    st = h->format == INPUT_TEXT ? add_text(w, h, text, n, &r->e) : add_lines(w, h, text, n, &r->e);
    r->h.status = st;
    if (st != OK)
        r->h.ndocuments = 0;
    else
        store(w);
    r->h.specials = document_encoder_specials(w->encoder) - specials;
}
