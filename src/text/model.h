/* The BPE model: vocabulary and merges. Read-only, shared by threads. */
#ifndef TEXT_MODEL_H
#define TEXT_MODEL_H
#include "text/part.h"
#include "text/strings.h"
#include "text/unicode.h"

enum { MODEL_IDS_MAX = 1 << 22, MODEL_JOIN_BITS = 20, MODEL_MAYBE_BITS = 22 };

struct merge {
    uint32_t left, right; /* 0, 0 with id MERGE_NONE: an empty slot */
    uint32_t rank, id;
};
#define MERGE_NONE UINT32_MAX

struct model {
    struct strings names; /* the vocabulary as in the file                         */
    struct strings raw;   /* with `bytes`: as the bytes that the names stand for   */
    struct model_text {
        uint32_t at, n; /* in names.pool                                         */
    } * text;           /* [size]; n UINT32_MAX: no such id                      */
    uint32_t size;      /* largest id + 1                                        */
    int bytes;          /* pieces are bytes, not characters                      */
    int ignore_merges;  /* a piece that is in the vocabulary is taken whole      */
    int byte_fallback, fuse_unk;
    int64_t unk; /* -1: characters that are absent vanish; -2: unk_token is absent itself */
    int32_t byte_id[256]; /* with `bytes`: of single bytes; else of <0xHH>, -1     */
    int32_t *point_id;    /* without `bytes`: [UNICODE_POINTS] of single characters, -1 */
    struct merge *merge;  /* [merge_mask + 1], by hash of (left, right)            */
    uint32_t merge_mask;
    int64_t nmerges;
    uint32_t ranks;  /* largest rank + 1 */
    uint64_t *maybe; /* bits by the same hash, hash >> maybe_shift: 0: there is no such merge */
    int maybe_shift; /* 8 bits for each slot, at most 2^MODEL_MAYBE_BITS: few, that they stay near
                      */
    struct model_pair {
        uint32_t rank, id; /* rank UINT32_MAX: none */
    } * pair;              /* with `bytes`: [65536], merges of single bytes, first byte * 256 */
    struct arena arena;    /* of these tables: in huge pages */
    uint64_t *joins; /* 2^MODEL_JOIN_BITS bits: hashes of neighbours inside any merge's result */
};

/* bytes: the splitter hands on bytes. It may turn out that the vocabulary has not all of them: then
 * m->bytes is 0. */
enum status model_read(struct model *m, const struct part *from, int bytes, struct err *e) LOCAL;
/* The rest, once names, text, size and merges' strings are there; model_index.c. */
void model_index(struct model *m, int bytes) LOCAL;
enum status model_add_name(struct model *m, const char *s, size_t n, uint32_t id, const char *where,
                           struct err *e) LOCAL;
void model_merges_begin(struct model *m, size_t n) LOCAL;
/* Later pairs win over equal ones. */
void model_merge_add(struct model *m, uint32_t left, uint32_t right, uint32_t rank,
                     uint32_t id) LOCAL;
void model_joins(struct model *m) LOCAL;
/* The bytes that the name of an id stands for in the byte-level alphabet; -1: it has other
 * characters, or there is no such id. */
int model_raw(const struct model *m, uint32_t id, struct buffer *to) LOCAL;
void model_free(struct model *m) LOCAL;

static inline uint32_t model_pair_hash(uint32_t left, uint32_t right)
{
    return (uint32_t)((((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u) >> 32);
}
static inline const struct merge *model_merge(const struct model *m, uint32_t left, uint32_t right)
{
    uint32_t h = model_pair_hash(left, right), bit = h >> m->maybe_shift;

    if (!(m->maybe[bit >> 6] >> (bit & 63) & 1))
        return NULL;
    for (uint32_t i = h & m->merge_mask;; i = (i + 1) & m->merge_mask) {
        const struct merge *g = &m->merge[i];

        if (g->id == MERGE_NONE)
            return NULL;
        if (g->left == left && g->right == right)
            return g;
    }
}
static inline uint32_t model_join_hash(uint32_t a, uint32_t b)
{
    return ((a * 0x9e3779b9u) ^ (b * 0x85ebca6bu)) >> (32 - MODEL_JOIN_BITS);
}
/* Can a merge span the border between these two bytes or characters? */
static inline int model_joined(const struct model *m, uint32_t a, uint32_t b)
{
    uint32_t h = model_join_hash(a, b);

    return m->joins[h >> 6] >> (h & 63) & 1;
}
#endif
