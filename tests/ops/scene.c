#include "scene.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

enum { GUARD = 192 };

static const uint32_t sentinel32 = 0x7fc0beef; /* quiet NaNs: what reads them shows */
static const uint64_t sentinel64 = 0x7ff8beefbeefbeef;

static void put_sentinel(char *p, size_t size)
{
    if (size == 8) {
        memcpy(p, &sentinel64, 8);
    } else {
        memcpy(p, &sentinel32, size);
    }
}

double scene_value(const struct buffer *b, const char *memory, int64_t row, int64_t col)
{
    double x;
    dtype_convert(&x, F64, memory + GUARD + (size_t)(row * b->ld + col) * dtype_size(b->t), b->t,
                  1);
    return x;
}

void scene_poke(const struct buffer *b, char *memory, int64_t row, int64_t col, double x)
{
    dtype_convert(memory + GUARD + (size_t)(row * b->ld + col) * dtype_size(b->t), b->t, &x, F64,
                  1);
}

static void fill_buffer(struct buffer *b, int index, double scale)
{
    size_t size = dtype_size(b->t);
    for (size_t at = 0; at + size <= b->bytes; at += size) {
        put_sentinel(b->first + at, size);
    }
    for (int64_t i = 0; i < b->rows * b->cols && dtype_is_float(b->t) && b->use != USE_OUT; i++) {
        double x = scale * rng_normal(7, (uint64_t)index, (uint64_t)i);
        scene_poke(b, b->first, i / b->cols, i % b->cols, x);
    }
}

static struct buffer *next_buffer(struct scene *s, enum use use, enum dtype t, int64_t rows,
                                  int64_t cols, int64_t ld, double scale)
{
    struct buffer *b = &s->buffer[s->next++];
    if (!s->ops) {
        BUG_IF(s->next > SCENE_BUFFERS);
        *b = (struct buffer){ .use = use, .t = t, .rows = rows, .cols = cols, .ld = ld };
        b->bytes = 2 * GUARD + (size_t)(rows * ld) * dtype_size(t);
        b->base = mem_take(b->bytes);
        b->first = mem_take(b->bytes);
        fill_buffer(b, s->next, scale);
        s->n = s->next;
    }
    return b;
}

struct operand scene_real(struct scene *s, enum use use, int64_t rows, int64_t cols, int64_t ld,
                          double scale)
{
    struct buffer *b = next_buffer(s, use, s->real, rows, cols, ld, scale);
    return (struct operand){ { b->base + GUARD }, s->real };
}

struct operand scene_typed(struct scene *s, enum use use, enum dtype t, int64_t n, double scale)
{
    struct buffer *b = next_buffer(s, use, t, 1, n, n, scale);
    return (struct operand){ { b->base + GUARD }, t };
}

dptr scene_ints(struct scene *s, int64_t n, int32_t **fill)
{
    struct buffer *b = next_buffer(s, USE_IN, I32, 1, n, n, 0);
    *fill = s->ops ? NULL : (int32_t *)(void *)(b->first + GUARD);
    return (dptr){ b->base + GUARD };
}

dptr scene_longs(struct scene *s, int64_t n, int64_t **fill)
{
    struct buffer *b = next_buffer(s, USE_IN, I64, 1, n, n, 0);
    *fill = s->ops ? NULL : (int64_t *)(void *)(b->first + GUARD);
    return (dptr){ b->base + GUARD };
}

dptr scene_scratch(struct scene *s, size_t bytes)
{
    struct buffer *b = next_buffer(s, USE_SCRATCH, U8, 1, (int64_t)bytes, (int64_t)bytes, 0);
    return (dptr){ b->base + GUARD };
}

static int index_of(const struct scene *s, struct operand o)
{
    for (int i = 0; i < s->n; i++) {
        if (s->buffer[i].base + GUARD == o.p.p) {
            return i;
        }
    }
    die(E_BUG, "a gradient case names a buffer that is not there");
}

void scene_pair(struct scene *s, struct operand x, struct operand dx)
{
    if (!s->ops) {
        s->pair[s->npairs++] = (struct pair){ index_of(s, x), index_of(s, dx) };
    }
}

void scene_loss(struct scene *s, struct operand y, struct operand dy)
{
    if (!s->ops) {
        s->y = index_of(s, y);
        s->dy = index_of(s, dy);
    }
}

void scene_make(struct scene *s, scene_case *c, const struct ops *cpu, const struct shape *d,
                enum dtype real, int threads)
{
    *s = (struct scene){ .cpu = cpu, .d = d, .real = real, .threads = threads };
    c(s);
}

void scene_free(struct scene *s)
{
    for (int i = 0; i < s->n; i++) {
        mem_give(s->buffer[i].base);
        mem_give(s->buffer[i].first);
    }
}

void scene_call(struct scene *s, scene_case *c, const struct ops *ops, struct queue *q)
{
    for (int i = 0; i < s->n; i++) {
        memcpy(s->buffer[i].base, s->buffer[i].first, s->buffer[i].bytes);
    }
    s->ops = ops;
    s->q = q;
    s->next = 0;
    c(s);
    ops->sync(q);
}

static int is_damaged(const struct buffer *b)
{
    size_t size = dtype_size(b->t), row = (size_t)b->ld * size, used = (size_t)b->cols * size;
    if (b->use == USE_IN) {
        return memcmp(b->base, b->first, b->bytes) != 0;
    }
    for (int64_t i = 0; i < b->rows; i++) {
        size_t gap = GUARD + (size_t)i * row + used;
        if (memcmp(b->base + gap, b->first + gap, row - used)) {
            return 1;
        }
    }
    return memcmp(b->base, b->first, GUARD) ||
           memcmp(b->base + b->bytes - GUARD, b->first + b->bytes - GUARD, GUARD);
}

int scene_damage(const struct scene *s)
{
    for (int i = 0; i < s->n; i++) {
        if (is_damaged(&s->buffer[i])) {
            return i;
        }
    }
    return -1;
}
