#include "checkpoint/checkpoint.h"

#include "base/arena.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 }; /* elements */

/* A tensor's place in the order of params.def: place, layer, row. */
struct place {
    int64_t order;
    const struct checkpoint_slab *slab;
};

/* 1 and the layer (-1: none) if name is the row's. */
static int name_is(const struct param_row *row, const char *name, long *layer)
{
    const char *hole = strstr(row->hf_name, "%d");
    size_t head = hole ? (size_t)(hole - row->hf_name) : 0;
    char *end;

    *layer = -1;
    if (!hole)
        return strcmp(row->hf_name, name) == 0;
    if (strncmp(name, row->hf_name, head) || name[head] < '0' || name[head] > '9')
        return 0;
    *layer = strtol(name + head, &end, 10);
    return strcmp(end, hole + 2) == 0 && *layer < 1 << 24;
}

static enum status place_of(const struct checkpoint *c, struct place *p, struct err *e)
{
    long layer;

    for (int i = 0; i < P_N; i++)
        if (name_is(&param_rows[i], p->slab->name, &layer)) {
            p->order = ((int64_t)param_rows[i].place << 32) + (int64_t)(layer + 1) * P_N + i;
            return OK;
        }
    return err_set(e, E_FILE, "%s: the tensor %s is not one that this program knows", c->dir,
                   p->slab->name);
}

static int by_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return (x->order > y->order) - (x->order < y->order);
}

static enum status tensor_add(struct checkpoint *c, enum checkpoint_kind kind,
                              const struct checkpoint_slab *s, struct hash_stream *h, char *buffer,
                              struct err *e)
{
    struct box whole = box_whole(s->nd, s->global), part[BOX_RUN_MAX];
    int64_t n = box_count(&whole);
    size_t size = dtype_size(s->dtype);
    enum status st = OK;

    for (int64_t at = 0; at < n && st == OK; at += CHUNK) {
        int64_t m = min_i64(CHUNK, n - at), done = 0;
        int parts = box_of_run(&whole, at, m, part);

        for (int i = 0; i < parts && st == OK; i++) {
            st = checkpoint_read_box(c, kind, s->name, &part[i], buffer + (size_t)done * size,
                                     s->dtype, e);
            done += box_count(&part[i]);
        }
        hash_add(h, buffer, (size_t)m * size);
    }
    return st;
}

enum status checkpoint_digest(struct checkpoint *c, char out[33], struct err *e)
{
    struct place *p = mem_take((size_t)c->nslabs * sizeof *p);
    struct hash_stream *h = hash_open();
    char *buffer = mem_take((size_t)CHUNK * 8);
    struct hash_text text;
    int n = 0;
    enum status st = OK;

    for (int i = 0; i < c->nslabs && st == OK; i++)
        if (n == 0 || strcmp(p[n - 1].slab->name, c->slab[i].name)) {
            p[n].slab = &c->slab[i];
            st = place_of(c, &p[n++], e);
        }
    qsort(p, (size_t)n, sizeof *p, by_order);
    hash_add(h, &c->scalars.step, sizeof c->scalars.step);
    hash_add(h, &c->scalars.samples, sizeof c->scalars.samples);
    for (int k = 0; k < CHECKPOINT_KINDS; k++)
        for (int i = 0; i < n && st == OK; i++)
            st = tensor_add(c, (enum checkpoint_kind)k, p[i].slab, h, buffer, e);
    text = hash_close(h);
    memcpy(out, text.s, sizeof text.s);
    mem_give(buffer);
    mem_give(p);
    return st;
}
