#include "scene.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

/* SCENE_TAIL: bytes behind the last element; 0 where a sanitizer watches the end itself. */
#ifndef SCENE_TAIL
#define SCENE_TAIL GUARD
#endif
enum { GUARD = 192 };

static const uint16_t sentinel16 = 0x7fef; /* quiet NaNs: what reads them shows */
static const uint32_t sentinel32 = 0x7fc0beef;
static const uint64_t sentinel64 = 0x7ff8beefbeefbeef;

static void put_sentinel(char *p, size_t size)
{
    const void *from = size == 8   ? (const void *)&sentinel64
                       : size == 2 ? (const void *)&sentinel16
                                   : (const void *)&sentinel32;
    memcpy(p, from, size);
}

double scene_value(const struct buffer *b, const char *memory, int64_t row, int64_t col)
{
    double x;
    dtype_convert(&x, F64, memory + b->start + (size_t)(row * b->ld + col) * dtype_size(b->t), b->t,
                  1);
    return x;
}

void scene_poke(const struct buffer *b, char *memory, int64_t row, int64_t col, double x)
{
    dtype_convert(memory + b->start + (size_t)(row * b->ld + col) * dtype_size(b->t), b->t, &x, F64,
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
        b->start = GUARD + (t == U8 ? 0 : (size_t)s->d->skew * dtype_size(t));
        b->bytes = b->start + (size_t)(rows * ld) * dtype_size(t) + SCENE_TAIL;
        b->base = mem_take(b->bytes);
        b->first = mem_take(b->bytes);
        const struct memory *device = s->tested->memory;
        b->device = device ? device->take(b->bytes) : NULL;
        BUG_IF(device && !b->device);
        fill_buffer(b, s->next, scale);
        s->n = s->next;
    }
    return b;
}

static dptr place_of(const struct scene *s, const struct buffer *b)
{
    return (dptr){ (s->ops && s->ops->memory ? b->device : b->base) + b->start };
}

struct operand scene_real(struct scene *s, enum use use, int64_t rows, int64_t cols, int64_t ld,
                          double scale)
{
    struct buffer *b = next_buffer(s, use, s->real, rows, cols, ld, scale);
    return (struct operand){ place_of(s, b), s->real };
}

struct operand scene_stat(struct scene *s, enum use use, int64_t rows, int64_t cols, int64_t ld,
                          double scale)
{
    struct buffer *b = next_buffer(s, use, s->stat, rows, cols, ld, scale);
    return (struct operand){ place_of(s, b), s->stat };
}

struct operand scene_typed(struct scene *s, enum use use, enum dtype t, int64_t n, double scale)
{
    struct buffer *b = next_buffer(s, use, t, 1, n, n, scale);
    return (struct operand){ place_of(s, b), t };
}

dptr scene_ints(struct scene *s, int64_t n, int32_t **fill)
{
    struct buffer *b = next_buffer(s, USE_IN, I32, 1, n, n, 0);
    *fill = s->ops ? NULL : (int32_t *)(void *)(b->first + b->start);
    return place_of(s, b);
}

dptr scene_longs(struct scene *s, int64_t n, int64_t **fill)
{
    struct buffer *b = next_buffer(s, USE_IN, I64, 1, n, n, 0);
    *fill = s->ops ? NULL : (int64_t *)(void *)(b->first + b->start);
    return place_of(s, b);
}

dptr scene_scratch(struct scene *s, size_t bytes)
{
    struct buffer *b = next_buffer(s, USE_SCRATCH, U8, 1, (int64_t)bytes, (int64_t)bytes, 0);
    return place_of(s, b);
}

static int index_of(const struct scene *s, struct operand o)
{
    for (int i = 0; i < s->n; i++) {
        if (place_of(s, &s->buffer[i]).p == o.p.p) {
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

void scene_make(struct scene *s, scene_case *c, const struct ops *tested, const struct shape *d,
                enum dtype real, int threads)
{
    *s = (struct scene){ .tested = tested, .d = d, .real = real, .threads = threads };
    s->stat = real == F64 ? F64 : F32;
    c(s);
}

void scene_free(struct scene *s)
{
    for (int i = 0; i < s->n; i++) {
        struct buffer *b = &s->buffer[i];
        mem_give(b->base);
        mem_give(b->first);
        if (b->device) {
            s->tested->memory->give(b->device, b->bytes);
        }
    }
}

void scene_call(struct scene *s, scene_case *c, const struct ops *ops, struct queue *q)
{
    for (int i = 0; i < s->n; i++) {
        struct buffer *b = &s->buffer[i];
        if (ops->memory) {
            ops->upload(q, (dptr){ b->device }, b->first, b->bytes);
        } else {
            memcpy(b->base, b->first, b->bytes);
        }
    }
    s->ops = ops;
    s->q = q;
    s->next = 0;
    c(s);
    for (int i = 0; i < s->n && ops->memory; i++) {
        ops->download(q, s->buffer[i].base, (dptr){ s->buffer[i].device }, s->buffer[i].bytes);
    }
    ops->sync(q);
}

static int is_damaged(const struct buffer *b)
{
    size_t size = dtype_size(b->t), row = (size_t)b->ld * size, used = (size_t)b->cols * size;
    if (b->use == USE_IN) {
        return memcmp(b->base, b->first, b->bytes) != 0;
    }
    for (int64_t i = 0; i < b->rows; i++) {
        size_t gap = b->start + (size_t)i * row + used;
        if (memcmp(b->base + gap, b->first + gap, row - used)) {
            return 1;
        }
    }
    return memcmp(b->base, b->first, b->start) ||
           memcmp(b->base + b->bytes - SCENE_TAIL, b->first + b->bytes - SCENE_TAIL, SCENE_TAIL);
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
