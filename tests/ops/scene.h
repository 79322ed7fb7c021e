/* One call of an operation with guarded buffers. A case is a function that names its buffers and
 * makes the call; it is run once without a backend, which makes and fills the buffers, and then
 * with each backend on the same first values. Of a backend with memory of its own, `base` holds
 * what the call left there. */
#ifndef TESTS_OPS_SCENE_H
#define TESTS_OPS_SCENE_H
#include "compute/choose.h"

enum { SCENE_BUFFERS = 24, SCENE_PAIRS = 6 };

enum use { USE_IN, USE_OUT, USE_INOUT, USE_SCRATCH };

struct buffer {
    enum use use;
    enum dtype t;
    int64_t rows, cols, ld; /* columns cols .. ld-1 are a gap that nobody may touch */
    size_t bytes;           /* with both guards                                      */
    size_t start;           /* of the first element                                  */
    char *base, *first;     /* memory of the call, and its first values              */
    char *device;           /* the same in the tested backend's memory, or NULL      */
};

struct shape {
    int64_t T, N, K;
    int heads, G, B;    /* heads: query heads for attention                      */
    int64_t Tk, offset; /* attention: keys, place of the first query             */
    int64_t pad;        /* extra columns in every leading dimension              */
    int64_t skew;       /* elements from an aligned address to each operand      */
    int flag;           /* add, merge, or the case's own variant                 */
};

struct scene {
    const struct ops *ops;    /* NULL: make the buffers                                */
    const struct ops *tested; /* scratch is sized for it and for the reference       */
    struct queue *q;
    const struct shape *d;
    enum dtype real, stat; /* of activations and weights; of statistics, logits, sums */
    int threads;
    struct buffer buffer[SCENE_BUFFERS];
    int n, next;
    struct pair {
        int x, dx;
    } pair[SCENE_PAIRS]; /* inputs and their gradients        */
    int npairs;
    int y, dy; /* gradient cases: the loss is the sum of y * dy         */
};

typedef void scene_case(struct scene *s);

void scene_make(struct scene *s, scene_case *c, const struct ops *tested, const struct shape *d,
                enum dtype real, int threads) LOCAL;
void scene_free(struct scene *s) LOCAL;
/* Restore the first values of all buffers, then make the call. */
void scene_call(struct scene *s, scene_case *c, const struct ops *ops, struct queue *q) LOCAL;
/* Index of the first buffer whose guards or gaps changed, or whose input did; -1: none */
int scene_damage(const struct scene *s) LOCAL;

/* For cases. The buffer's operand; rows x cols with row stride ld. scale: inputs are normal numbers
 * times it. */
struct operand scene_real(struct scene *s, enum use use, int64_t rows, int64_t cols, int64_t ld,
                          double scale) LOCAL;
/* The same for statistics, logits and sums: F64 in float64, else F32. */
struct operand scene_stat(struct scene *s, enum use use, int64_t rows, int64_t cols, int64_t ld,
                          double scale) LOCAL;
struct operand scene_typed(struct scene *s, enum use use, enum dtype t, int64_t n,
                           double scale) LOCAL;
/* n int32; *fill is where to write first values, or NULL when they stand already */
dptr scene_ints(struct scene *s, int64_t n, int32_t **fill) LOCAL;
/* The same for int64. */
dptr scene_longs(struct scene *s, int64_t n, int64_t **fill) LOCAL;
dptr scene_scratch(struct scene *s, size_t bytes) LOCAL;
void scene_pair(struct scene *s, struct operand x, struct operand dx) LOCAL;
void scene_loss(struct scene *s, struct operand y, struct operand dy) LOCAL;

double scene_value(const struct buffer *b, const char *memory, int64_t row, int64_t col) LOCAL;
void scene_poke(const struct buffer *b, char *memory, int64_t row, int64_t col, double x) LOCAL;
#endif
