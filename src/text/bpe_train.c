#include "text/bpe_train.h"

#include <string.h>

#include "text/bpe_pairs.h"

enum { LEFT, RIGHT, SIDES };

/* ---- vocabulary ---- */

struct vocabulary {
    struct bpe *out;
    struct word_count ids; /* bytes of a token -> id + 1; a raw one is not in it */
    int32_t tokens_room;
    int64_t text_room;
    int32_t byte[BPE_BYTES]; /* id of a byte */
};

/* Bytes that print stand for themselves, the other 68, in ascending order, are U+0100 and up. */
static int is_plain(int byte)
{
    return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
}

static void alphabet(int character[BPE_BYTES])
{
    int next = 0x100;

    for (int b = 0; b < BPE_BYTES; b++)
        character[b] = is_plain(b) ? b : next++;
}

/* The bytes that s, in the alphabet's characters, stands for; -1: it has another character. */
static int64_t decode(const char *s, char *bytes)
{
    int character[BPE_BYTES];
    int64_t n = 0;

    alphabet(character);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        int c = *p < 0x80 ? *p : (*p & 0x1f) << 6 | (p[1] & 0x3f), b = 0;

        if (*p >= 0xe0)
            return -1;
        while (b < BPE_BYTES && character[b] != c)
            b++;
        if (b == BPE_BYTES)
            return -1;
        bytes[n++] = (char)b;
        p += *p >= 0x80;
    }
    return n;
}

static int32_t token_add(struct vocabulary *v, const char *text, int64_t n)
{
    struct bpe *o = v->out;
    int64_t at = o->ntokens ? o->start[o->ntokens] : 0;

    if (o->ntokens + 1 >= v->tokens_room) {
        int32_t room = 2 * v->tokens_room + 1024;

        o->start = mem_grow(o->start, (size_t)v->tokens_room * sizeof *o->start,
                            (size_t)room * sizeof *o->start);
        v->tokens_room = room;
    }
    if (at + n + WORD_PAD > v->text_room) {
        int64_t room = 2 * v->text_room + n + 65536;

        o->text = mem_grow(o->text, (size_t)v->text_room, (size_t)room);
        v->text_room = room;
    }
    memcpy(o->text + at, text, (size_t)n);
    o->start[o->ntokens + 1] = at + n;
    return o->ntokens++;
}

/* The token of these bytes (WORD_PAD more can be read), a new one if need be. */
static int32_t token_of(struct vocabulary *v, const char *bytes, int64_t n)
{
    int64_t *id = word_count_at(&v->ids, bytes, (uint32_t)n);

    if (!*id)
        *id = token_add(v, bytes, n) + 1;
    return (int32_t)*id - 1;
}

static void special_add(struct vocabulary *v, const char *s)
{
    struct bpe *o = v->out;
    size_t n = strlen(s);
    char *bytes = mem_take(n + WORD_PAD);
    int64_t k = decode(s, bytes);

    if (k >= 0) {
        token_of(v, bytes, k);
    } else {
        int32_t i = 0;

        while (i < o->ntokens && !(o->raw[i] && o->start[i + 1] - o->start[i] == (int64_t)n &&
                                   !memcmp(o->text + o->start[i], s, n)))
            i++;
        if (i == o->ntokens)
            o->raw[token_add(v, s, (int64_t)n)] = 1;
    }
    mem_give(bytes);
}

/* Special tokens, then the bytes in the order of their characters. */
static void vocabulary_start(struct vocabulary *v, const struct bpe_train *t, struct bpe *out)
{
    *v = (struct vocabulary){ .out = out };
    *out = (struct bpe){ .raw = mem_take((size_t)t->nspecial) };
    for (int i = 0; i < t->nspecial; i++)
        special_add(v, t->special[i]);
    out->nspecial = out->ntokens;
    for (int plain = 1; plain >= 0; plain--)
        for (int b = 0; b < BPE_BYTES; b++)
            if (is_plain(b) == plain) {
                char one[WORD_PAD + 1] = { (char)b };

                v->byte[b] = token_of(v, one, 1);
            }
}

/* The token that a and b make. */
static int32_t token_join(struct vocabulary *v, uint64_t pair)
{
    const struct bpe *o = v->out;
    int32_t part[2] = { (int32_t)(pair >> 32), (int32_t)(uint32_t)pair }, id;
    int64_t n[2], at = 0;
    char *bytes;

    for (int i = 0; i < 2; i++)
        n[i] = o->start[part[i] + 1] - o->start[part[i]];
    bytes = mem_take((size_t)(n[0] + n[1] + WORD_PAD));
    for (int i = 0; i < 2; at += n[i], i++)
        memcpy(bytes + at, o->text + o->start[part[i]], (size_t)n[i]);
    id = token_of(v, bytes, n[0] + n[1]);
    mem_give(bytes);
    return id;
}

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
    struct vocabulary v;
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
            /* c c has one list, that of the left side */
            arrive(t, s[i + 1], s[i + 1] == c ? LEFT : RIGHT, w, word->count);
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

static void merge_add(struct training *t, uint64_t pair, int32_t token)
{
    struct bpe *o = t->v.out;

    if (o->nmerges == t->merges_room) {
        int64_t room = 2 * t->merges_room + 1024;

        o->merge = mem_grow(o->merge, (size_t)t->merges_room * sizeof *o->merge,
                            (size_t)room * sizeof *o->merge);
        t->merges_room = room;
    }
    o->merge[o->nmerges++] = (struct bpe_merge){ pair, token };
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
    int32_t c = token_join(&t->v, e->pair);
    const struct word_list *l = &e->words;

    merge_add(t, e->pair, c);
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

/* A pair that was merged more than once keeps its last place. */
static void merges_once(struct bpe *o)
{
    struct pair_counts seen = { NULL };
    int32_t at = o->nmerges;

    for (int32_t i = o->nmerges - 1; i >= 0; i--) {
        if (pair_counts_get(&seen, o->merge[i].pair))
            continue;
        pair_counts_add(&seen, o->merge[i].pair, 1);
        o->merge[--at] = o->merge[i];
    }
    o->nmerges -= at;
    memmove(o->merge, o->merge + at, (size_t)o->nmerges * sizeof *o->merge);
    pair_counts_close(&seen);
}

int32_t bpe_train_least(const struct bpe_train *t)
{
    struct vocabulary v;
    struct bpe b;
    int32_t n;

    vocabulary_start(&v, t, &b);
    n = b.ntokens;
    word_count_close(&v.ids);
    bpe_close(&b);
    return n;
}

void bpe_train(const struct bpe_train *asked, struct word_count *words, struct bpe *out)
{
    struct training t = { .asked = asked, .queue.floor = INT64_MAX };

    vocabulary_start(&t.v, asked, out);
    BUG_IF(asked->vocab_size < out->ntokens);
    words_take(&t, words);
    pairs_start(&t);
    merge_all(&t);
    merges_once(out);
    word_count_close(&t.v.ids);
    pair_counts_close(&t.counts);
    pair_queue_close(&t.queue);
    word_lists_close(&t.lists);
    arena_close(&t.memory);
    mem_give(t.byte_of);
    mem_give(t.side);
    mem_give(t.touched);
    mem_give(t.arrival);
}

size_t bpe_token_text(const struct bpe *b, int32_t token, char *text)
{
    const char *s = b->text + b->start[token];
    size_t n = (size_t)(b->start[token + 1] - b->start[token]), at = 0;
    int character[BPE_BYTES];

    if (token < b->nspecial && b->raw[token]) {
        memcpy(text, s, n);
        return n;
    }
    alphabet(character);
    for (size_t i = 0; i < n; i++) {
        int c = character[(unsigned char)s[i]];

        if (c >= 0x80)
            text[at++] = (char)(0xc0 | c >> 6);
        text[at++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    }
    return at;
}

void bpe_close(struct bpe *b)
{
    mem_give(b->start);
    mem_give(b->text);
    mem_give(b->raw);
    mem_give(b->merge);
    *b = (struct bpe){ 0 };
}
