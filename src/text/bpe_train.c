#include "text/bpe_train.h"

#include "text/bpe_pairs.h"

enum { LEFT, RIGHT, SIDES };

/* ---- the state of training ---- */

/* Words lie one behind another, their tokens with them: a visit is one miss of the cache. A list
 * names a word by where it begins, in units of WORD_UNIT. */
struct word {
    int64_t count;
    int32_t n;
    int32_t token[];
};
enum { WORD_UNIT = 8 };

struct side { /* what a step does to the pairs of one token on one side of the merged ones */
    int64_t minus, plus;
    int32_t words;  /* of plus */
    uint32_t last;  /* of them, + 1 */
    uint32_t *list; /* where the next word goes; NULL: nowhere */
    int touched;
};

struct arrival { /* a pair arose in a word */
    int32_t side;
    uint32_t word;
};

struct training {
    const struct bpe_train *asked;
    struct bpe_vocabulary v;
    char *words; /* those of two bytes or more; in memory */
    struct arena memory;
    uint32_t units; /* the length of words */
    int *byte_of;   /* [ntokens at the start] the byte that a token is */
    struct pair_counts counts;
    struct pair_queue queue;
    struct word_lists lists;
    struct side *side; /* [sides_room] 2 token + LEFT or RIGHT */
    int32_t *touched;  /* [sides_room] */
    int32_t sides_room, ntouched;
    struct arrival *arrival; /* [arrivals_room] of a step */
    size_t narrivals, arrivals_room;
    int64_t merges_room;
};

static inline uint64_t pair_of(int32_t a, int32_t b)
{
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

static inline struct word *word_at(const struct training *t, uint32_t unit)
{
    return (struct word *)(t->words + (size_t)unit * WORD_UNIT);
}

/* Of a word that has n tokens at the start. */
static inline uint32_t word_units(uint32_t n)
{
    return (uint32_t)ceil_div((int64_t)sizeof(struct word) + 4 * (int64_t)n, WORD_UNIT);
}

static void words_take(struct training *t, struct word_count *words)
{
    uint64_t units = 0;
    uint32_t at = 0;

    t->byte_of = mem_take((size_t)t->v.out->ntokens * sizeof *t->byte_of);
    for (int b = 0; b < BPE_BYTES; b++)
        t->byte_of[t->v.byte[b]] = b;
    for (size_t i = 0; i < words->room; i++)
        units += words->slot[i].n > 1 ? word_units(words->slot[i].n) : 0;
    if (units > UINT32_MAX)
        die(E_RESOURCE, "the different words are more than %d GiB: give less text", WORD_UNIT * 4);
    t->units = (uint32_t)units;
    t->words = word_count_memory(&t->memory, (size_t)units * WORD_UNIT);
    for (size_t i = 0; i < words->room; i++) {
        const struct word_slot *s = &words->slot[i];
        const char *text = word_count_text(words, s);
        struct word *w = word_at(t, at);

        if (s->n < 2)
            continue;
        w->count = s->count;
        w->n = (int32_t)s->n;
        for (uint32_t k = 0; k < s->n; k++)
            w->token[k] = t->v.byte[(unsigned char)text[k]];
        at += word_units(s->n);
    }
    word_count_close(words);
}

static void push(struct training *t, uint64_t pair, int64_t count, struct word_list words)
{
    struct pair_entry e = { count, pair, words };

    pair_queue_push(&t->queue, &e);
}

struct start { /* a pair of bytes */
    int64_t count;
    int32_t words;
    uint32_t last; /* the last word + 1 */
    uint32_t *list;
};

/* All words: count the pairs, or fill their lists. */
static void pairs_walk(struct training *t, struct start *pair, int fill)
{
    for (uint32_t w = 0, next; w < t->units; w = next) {
        const struct word *word = word_at(t, w);
        int first = t->byte_of[word->token[0]];

        for (int32_t i = 1; i < word->n; i++) {
            int second = t->byte_of[word->token[i]];
            struct start *p = &pair[first * BPE_BYTES + second];

            first = second;
            if (!fill)
                p->count += word->count;
            if (p->last == w + 1)
                continue;
            p->last = w + 1;
            if (fill)
                *p->list++ = w;
            else
                p->words++;
        }
        next = w + word_units((uint32_t)word->n);
    }
}

static void pairs_start(struct training *t)
{
    struct start *pair = mem_take((size_t)BPE_BYTES * BPE_BYTES * sizeof *pair);

    pairs_walk(t, pair, 0);
    for (int i = 0; i < BPE_BYTES * BPE_BYTES; i++)
        if (pair[i].words) {
            uint64_t two = pair_of(t->v.byte[i / BPE_BYTES], t->v.byte[i % BPE_BYTES]);
            struct word_list l = word_lists_take(&t->lists, pair[i].words);

            pair[i].list = l.word;
            pair[i].last = 0;
            pair_counts_add(&t->counts, two, pair[i].count);
            push(t, two, pair[i].count, l);
        }
    pairs_walk(t, pair, 1);
    mem_give(pair);
}

/* ---- one merge ---- */

static struct side *touch(struct training *t, int32_t token, int which)
{
    int32_t i = 2 * token + which;
    struct side *s = &t->side[i];

    if (!s->touched) {
        s->touched = 1;
        t->touched[t->ntouched++] = i;
    }
    return s;
}

static void arrive(struct training *t, int32_t token, int which, uint32_t w, int64_t count)
{
    struct side *s = touch(t, token, which);

    s->plus += count;
    if (s->last == w + 1)
        return;
    s->last = w + 1;
    s->words++;
    if (t->narrivals == t->arrivals_room) {
        size_t room = 2 * t->arrivals_room + 4096;

        t->arrival =
            mem_grow(t->arrival, t->arrivals_room * sizeof *t->arrival, room * sizeof *t->arrival);
        t->arrivals_room = room;
    }
    t->arrival[t->narrivals++] = (struct arrival){ (int32_t)(s - t->side), w };
}

/* Every a b of the word, from the left, becomes c; its neighbours are noted. */
static void word_merge(struct training *t, uint32_t w, int32_t a, int32_t b, int32_t c)
{
    struct word *word = word_at(t, w);
    int32_t *s = word->token, n = word->n, o = 0;

    for (int32_t i = 0; i < n; i++, o++) {
        if (s[i] != a || i + 1 == n || s[i + 1] != b) {
            s[o] = s[i];
            continue;
        }
        if (o > 0) {
            touch(t, s[o - 1], LEFT)->minus += word->count;
            arrive(t, s[o - 1], LEFT, w, word->count);
        }
        s[o] = c;
        i++;
        if (i + 1 < n) {
            touch(t, s[i + 1], RIGHT)->minus += word->count;
            arrive(t, s[i + 1], RIGHT, w, word->count);
        }
    }
    word->n = o;
}

/* All counts change before the first new entry is made. */
static void pairs_update(struct training *t, int32_t a, int32_t b, int32_t c)
{
    for (int32_t k = 0; k < t->ntouched; k++) {
        int32_t i = t->touched[k], x = i / 2;
        const struct side *s = &t->side[i];

        if (s->minus)
            pair_counts_add(&t->counts, i % 2 == LEFT ? pair_of(x, a) : pair_of(b, x), -s->minus);
        if (s->plus)
            pair_counts_add(&t->counts, i % 2 == LEFT ? pair_of(x, c) : pair_of(c, x), s->plus);
    }
    for (int32_t k = 0; k < t->ntouched; k++) {
        int32_t i = t->touched[k], x = i / 2;
        uint64_t pair = i % 2 == LEFT ? pair_of(x, c) : pair_of(c, x);
        struct side *s = &t->side[i];
        int64_t count = s->words ? pair_counts_get(&t->counts, pair) : 0;

        if (count > 0) {
            struct word_list l = word_lists_take(&t->lists, s->words);

            s->list = l.word;
            push(t, pair, count, l);
        }
    }
    for (size_t k = 0; k < t->narrivals; k++) {
        struct side *s = &t->side[t->arrival[k].side];

        if (s->list)
            *s->list++ = t->arrival[k].word;
    }
    for (int32_t k = 0; k < t->ntouched; k++)
        t->side[t->touched[k]] = (struct side){ 0 };
    t->ntouched = 0;
    t->narrivals = 0;
}

static void merge_add(struct training *t, uint64_t pair)
{
    struct bpe *o = t->v.out;

    if (o->nmerges == t->merges_room) {
        int64_t room = 2 * t->merges_room + 1024;

        o->merge = mem_grow(o->merge, (size_t)t->merges_room * sizeof *o->merge,
                            (size_t)room * sizeof *o->merge);
        t->merges_room = room;
    }
    o->merge[o->nmerges++] = pair;
}

static void sides_for(struct training *t, int32_t tokens)
{
    int32_t room = 2 * SIDES * tokens;

    if (SIDES * tokens <= t->sides_room)
        return;
    t->side =
        mem_grow(t->side, (size_t)t->sides_room * sizeof *t->side, (size_t)room * sizeof *t->side);
    t->touched = mem_grow(t->touched, (size_t)t->sides_room * sizeof *t->touched,
                          (size_t)room * sizeof *t->touched);
    t->sides_room = room;
}

static void merge_one(struct training *t, const struct pair_entry *e)
{
    enum { AHEAD = 12 };
    int32_t a = (int32_t)(e->pair >> 32), b = (int32_t)(uint32_t)e->pair;
    int32_t c = bpe_vocabulary_join(&t->v, e->pair);
    const struct word_list *l = &e->words;

    merge_add(t, e->pair);
    sides_for(t, t->v.out->ntokens);
    for (int32_t i = 0; i < l->n; i++) {
        if (i + AHEAD < l->n)
            __builtin_prefetch(word_at(t, l->word[i + AHEAD]), 1);
        word_merge(t, l->word[i], a, b, c);
    }
    word_lists_drop(&t->lists, l);
    pairs_update(t, a, b, c);
}

static void merge_all(struct training *t)
{
    struct bpe *o = t->v.out;
    struct pair_entry e;
    int64_t said = 0;

    while (o->ntokens < t->asked->vocab_size && pair_queue_pop(&t->queue, &e)) {
        int64_t now = pair_counts_get(&t->counts, e.pair);

        if (e.count != now) {
            push(t, e.pair, now, e.words);
            continue;
        }
        if (e.count < 1 || e.count < t->asked->min_frequency)
            break;
        merge_one(t, &e);
        if (t->asked->step && ++said % 64 == 0)
            t->asked->step(t->asked->self, o->ntokens);
    }
}

/* ---- the whole ---- */

int32_t bpe_train_least(const struct bpe_train *t)
{
    struct bpe_vocabulary v;
    struct bpe b;
    int32_t n;

    bpe_vocabulary_start(&v, t->special, t->nspecial, &b);
    n = b.ntokens;
    bpe_vocabulary_close(&v);
    bpe_close(&b);
    return n;
}

void bpe_train(const struct bpe_train *asked, struct word_count *words, struct bpe *out)
{
    struct training t = { .asked = asked, .queue.floor = INT64_MAX };

    bpe_vocabulary_start(&t.v, asked->special, asked->nspecial, out);
    BUG_IF(asked->vocab_size < out->ntokens);
    words_take(&t, words);
    pairs_start(&t);
    merge_all(&t);
    bpe_vocabulary_close(&t.v);
    pair_counts_close(&t.counts);
    pair_queue_close(&t.queue);
    word_lists_close(&t.lists);
    arena_close(&t.memory);
    mem_give(t.byte_of);
    mem_give(t.side);
    mem_give(t.touched);
    mem_give(t.arrival);
}
