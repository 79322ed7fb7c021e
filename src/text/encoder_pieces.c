#include "text/encoder_impl.h"

enum {
    UNCUT = 96, /* longer pieces are cut where no merge can span the cut */
    BATCH = 16,
    SEEDS = 1 << 15 /* ids; low ones are frequent */
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

    for (uint32_t i = 0; m->raw.slot && i <= m->raw.mask; i++) {
        const struct strings_slot *s = &m->raw.slot[i];
        const char *p = m->raw.pool.at + s->at;

        if (!s->hash || s->value >= SEEDS || s->n > WORDS_KEY)
            continue;
        one.n = 0;
        if (m->ignore_merges)
            ids_add(&one, s->value);
        else
            merger_run(m, &c->merger, p, s->n, &one, NULL);
        words_put(&c->words, p, s->n, one.at, one.n);
    }
    ids_free(&one);
}

/* ---- many pieces ---- */

struct waiting { /* a piece whose bucket is on its way from memory */
    const char *p;
    size_t n;
    uint64_t key[2];
    const struct word *bucket;
};

static inline void prepare(const struct encoder *c, struct waiting *q, const char *p, size_t n,
                           const char *end)
{
    q->p = p;
    q->n = n;
    if (n > WORDS_KEY) {
        q->bucket = NULL;
        return;
    }
    if (end - p >= 16)
        words_key_fast(p, n, q->key);
    else
        words_key(p, n, q->key);
    q->bucket = words_bucket(&c->words, q->key);
    __builtin_prefetch(q->bucket);
}

/* out has room for the ids of a short piece: one for each byte. */
static inline enum status resolve(struct encoder *c, const struct waiting *q, struct err *e)
{
    const struct word *b = q->bucket;

    if (b) {
        b += b->key[0] != q->key[0] || b->key[1] != q->key[1];
        if (b->key[0] == q->key[0] && b->key[1] == q->key[1]) {
            memcpy(c->out->at + c->out->n, b->id, sizeof b->id);
            if (b->n > 3)
                memcpy(c->out->at + c->out->n, c->words.more.at + b->id[0], b->n * sizeof *b->id);
            c->out->n += b->n;
            return OK;
        }
    }
    return encoder_piece(c, q->p, q->n, e);
}

static enum status resolve_all(struct encoder *c, const struct waiting *q, int n, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < n && st == OK; i++) {
        if (c->out->room - c->out->n < WORDS_KEY)
            ids_grow(c->out, WORDS_KEY);
        st = resolve(c, &q[i], e);
    }
    return st;
}

/* The pieces that are marked in c->scan. */
static enum status encode_marked(struct encoder *c, const char *text, size_t n, const char *end,
                                 struct err *e)
{
    struct waiting queue[BATCH];
    size_t from = 0;
    int waiting = 0;
    enum status st = OK;

    for (size_t w = 0; w <= n / 64 && st == OK; w++)
        for (uint64_t x = c->scan.start[w]; x && st == OK; x &= x - 1) {
            size_t to = w * 64 + (size_t)__builtin_ctzll(x);

            if (to == from)
                continue;
            prepare(c, &queue[waiting++], text + from, to - from, end);
            from = to;
            if (waiting == BATCH) {
                st = resolve_all(c, queue, waiting, e);
                waiting = 0;
            }
        }
    return st == OK ? resolve_all(c, queue, waiting, e) : st;
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
