/* Pairs of tokens in training: their counts, the lists of words that hold them, and the queue from
 * which the next merge is taken. A pair (a, b) is a << 32 | b. */
#ifndef TEXT_BPE_PAIRS_H
#define TEXT_BPE_PAIRS_H
#include "base/types.h"

struct pair_count {
    uint64_t pair;
    int64_t count;
};
struct pair_counts { /* zeroed before use; pairs of count 0 may be forgotten */
    struct pair_count *slot;
    size_t room, used;
};
void pair_counts_add(struct pair_counts *c, uint64_t pair, int64_t change) LOCAL;
int64_t pair_counts_get(const struct pair_counts *c, uint64_t pair) LOCAL; /* 0: unknown */
void pair_counts_close(struct pair_counts *c) LOCAL;

/* Lists of words live in chunks; a chunk goes when the last of its lists is dropped. */
struct word_list {
    uint32_t *word; /* [n] */
    int32_t n, chunk;
};
struct word_lists { /* zeroed before use */
    struct chunk {
        uint32_t *word; /* NULL: this number is free */
        int32_t lists;
    } * chunk; /* [nchunks] */
    int32_t nchunks, room, last, free;
    int32_t used; /* of the last chunk */
};
struct word_list word_lists_take(struct word_lists *l, int32_t n) LOCAL;
void word_lists_drop(struct word_lists *l, const struct word_list *list) LOCAL;
void word_lists_close(struct word_lists *l) LOCAL;

/* The largest count comes first, among equals the smallest pair. */
struct pair_entry {
    int64_t count; /* when it was pushed */
    uint64_t pair;
    struct word_list words;
};
struct pair_entries {
    struct pair_entry *at; /* [room] */
    size_t n, room;
};
struct pair_queue {           /* { .floor = INT64_MAX } before use */
    struct pair_entries near; /* a heap of all with count >= floor */
    struct pair_entries far;  /* the others, in no order */
    int64_t floor;
};
void pair_queue_push(struct pair_queue *q, const struct pair_entry *e) LOCAL;
int pair_queue_pop(struct pair_queue *q, struct pair_entry *e) LOCAL; /* 0: empty */
void pair_queue_close(struct pair_queue *q) LOCAL;
#endif
