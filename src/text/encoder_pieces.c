#include "text/encoder_impl.h"

enum {
    UNCUT = 96, /* longer pieces are cut where no merge can span the cut */
    BATCH = 16,
    SEEDS = 1 << 16 /* ids; low ones are frequent */
};

enum status encoder_flush(struct encoder *c, size_t at_least, struct err *e)
{
    enum status st = OK;

    if (c->sink && c->out->n >= at_least && c->out->n > 0) {
        st = c->sink(c->to, c->out->at, c->out->n, e);
        c->out->n = 0;
    }
    return st;
}

/* A piece that `words` does not know. */
static enum status encode_new(struct encoder *c, const char *p, size_t n, struct err *e)
{
    size_t before = c->out->n;
    enum status st = merger_run(&c->t->model, &c->merger, p, n, c->out, e);

    if (st == OK && n <= WORDS_LONG)
        words_put(&c->words, p, n, c->out->at + before, c->out->n - before);
    return st;
}

static enum status encode_in_parts(struct encoder *c, const char *p, size_t n, struct err *e)
{
    const struct model *m = &c->t->model;
    enum status st = OK;

    for (size_t at = 0; at < n && st == OK;) {
        size_t to = at + merger_border(m, p + at, n - at, 0);

        if (m->ignore_merges) /* `words` would take a part for a whole piece */
            st = merger_run(m, &c->merger, p + at, to - at, c->out, e);
        else if (to - at > WORDS_LONG || !words_get(&c->words, p + at, to - at, c->out))
            st = encode_new(c, p + at, to - at, e);
        at = to;
        if (st == OK)
            st = encoder_flush(c, SINK_IDS, e);
    }
    return st;
}

enum status encoder_piece(void *to, const char *p, size_t n, struct err *e)
{
    struct encoder *c = to;
    const struct model *m = &c->t->model;
    int64_t id = -1;
    enum status st = OK;

    if (n <= WORDS_LONG && words_get(&c->words, p, n, c->out))
        return encoder_flush(c, SINK_IDS, e);
    if (m->ignore_merges)
        id = strings_find(m->bytes ? &m->raw : &m->names, p, n);
    if (id >= 0) {
        uint32_t one = (uint32_t)id;

        ids_add(c->out, one);
        if (n <= WORDS_LONG)
            words_put(&c->words, p, n, &one, 1);
    } else {
        st = n > UNCUT ? encode_in_parts(c, p, n, e) : encode_new(c, p, n, e);
    }
    return st == OK ? encoder_flush(c, SINK_IDS, e) : st;
}

void encoder_seed(struct encoder *c)
{
    const struct model *m = &c->t->model;
    struct ids one = { 0 };
    struct buffer raw = { 0 };

    for (uint32_t id = m->size < SEEDS ? m->size : SEEDS; m->bytes && id-- > 0;) {
        if (model_raw(m, id, &raw) || raw.n > WORDS_KEY)
            continue;
        one.n = 0;
        if (m->ignore_merges)
            ids_add(&one, id);
        else
            merger_run(m, &c->merger, raw.at, raw.n, &one, NULL);
        words_put(&c->words, raw.at, raw.n, one.at, one.n);
    }
    ids_free(&one);
    buffer_free(&raw);
}

/* ---- many pieces ---- */

struct waiting { /* a piece whose bucket is on its way from memory */
    const char *p;
    size_t n;
    uint64_t key[2];
    const struct word *bucket;
};

/* Pieces that are too long for a bucket find this one. */
static const struct word none[2];

static inline void prepare(const struct encoder *c, struct waiting *q, const char *p, size_t n,
                           const char *end)
{
    q->p = p;
    q->n = n;
    if (n > WORDS_KEY) {
        q->key[0] = q->key[1] = ~(uint64_t)0;
        q->bucket = none;
        return;
    }
    if (end - p >= 16)
        words_key_fast(p, n, q->key);
    else
        words_key(p, n, q->key);
    q->bucket = words_bucket(&c->words, q->key);
    __builtin_prefetch(q->bucket);
}

/* Room for the ids of a batch of short pieces: at most one for each byte. */
static uint32_t *reserve(struct ids *out)
{
    if (out->room - out->n < BATCH * (WORDS_KEY + 1))
        ids_grow(out, BATCH * (WORDS_KEY + 1));
    return out->at + out->n;
}

static enum status resolve(struct encoder *c, const struct waiting *q, int n, struct err *e)
{
    uint32_t *o = reserve(c->out);
    enum status st = OK;

    for (int i = 0; i < n && st == OK; i++, q++) {
        const struct word *b = q->bucket;

        b += ((b->key[0] ^ q->key[0]) | (b->key[1] ^ q->key[1])) != 0;
        if (__builtin_expect(((b->key[0] ^ q->key[0]) | (b->key[1] ^ q->key[1])) == 0, 1)) {
            memcpy(o, b->id, sizeof b->id);
            if (__builtin_expect(b->n > 3, 0))
                memcpy(o, c->words.more.at + b->id[0], b->n * sizeof *b->id);
            o += b->n;
            continue;
        }
        c->out->n = (size_t)(o - c->out->at);
        st = encoder_piece(c, q->p, q->n, e);
        o = reserve(c->out);
    }
    c->out->n = (size_t)(o - c->out->at);
    return st;
}

/* The pieces that are marked in c->scan. */
static enum status encode_marked(struct encoder *c, const char *text, size_t n, const char *end,
                                 struct err *e)
{
    struct waiting queue[BATCH];
    const char *from = text;
    int waiting = 0;
    enum status st = OK;

    c->scan.start[0] &= ~(uint64_t)1;
    for (size_t w = 0; w <= n / 64 && st == OK; w++)
        for (uint64_t x = c->scan.start[w]; x && st == OK; x &= x - 1) {
            const char *to = text + w * 64 + __builtin_ctzll(x);

            prepare(c, &queue[waiting++], from, (size_t)(to - from), end);
            from = to;
            if (waiting == BATCH) {
                st = resolve(c, queue, waiting, e);
                waiting = 0;
            }
        }
    return st == OK ? resolve(c, queue, waiting, e) : st;
}

enum status encoder_scan(struct encoder *c, const char *text, size_t n, struct err *e)
{
    enum status st = OK;

    for (size_t at = 0, k; at < n && st == OK; at += k) {
        k = scan_pieces(&c->scan, text + at, n - at);
        st = encode_marked(c, text + at, k, text + n, e);
        if (st == OK)
            st = encoder_flush(c, SINK_IDS, e);
    }
    return st;
}
