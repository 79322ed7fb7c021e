#include "checkpoint/pieces.h"

#include "base/arena.h"
#include "checkpoint/checkpoint.h"

#include <stdio.h>

static void print_shape(char text[64], int nd, const int64_t *shape)
{
    int at = 0;

    for (int d = 0; d < nd; d++)
        at += snprintf(text + at, 64 - (size_t)at, "%s%lld", d ? ", " : "", (long long)shape[d]);
}

static enum status check_shape(const struct checkpoint *c, const struct param *p, struct err *e)
{
    int64_t shape[3];
    enum dtype t;
    int nd = checkpoint_shape(c, CHECKPOINT_WEIGHTS, p->name, shape, &t), same = nd == p->nd;
    char here[64], there[64];

    if (!nd)
        return err_set(e, E_FILE, "%s: there is no tensor %s: it is a checkpoint of another model",
                       c->dir, p->name);
    for (int d = 0; d < nd && same; d++)
        same = shape[d] == p->global[d];
    if (same)
        return OK;
    print_shape(here, p->nd, p->global);
    print_shape(there, nd, shape);
    return err_set(
        e, E_FILE,
        "%s: %s has the shape [%s], the input needs [%s]: it is a checkpoint of another model",
        c->dir, p->name, there, here);
}

static enum status load_piece(struct checkpoint *c, enum checkpoint_kind kind,
                              const struct ops *ops, struct queue *q, const struct piece *p,
                              char *buffer, struct err *e)
{
    struct operand dst = piece_operand(p, (int)kind);
    int64_t n = piece_real(p);
    size_t size = dtype_size(dst.t);
    struct box part[BOX_RUN_MAX];
    enum status st = OK;

    if (!dst.p.p) /* the weights alone are wanted */
        return OK;
    for (int64_t at = 0; at < n && st == OK; at += PIECE_CHUNK) {
        int64_t m = min_i64(PIECE_CHUNK, n - at), done = 0;
        int parts = piece_boxes(p, at, m, part);

        for (int i = 0; i < parts && st == OK; i++) {
            st = checkpoint_read_box(c, kind, p->p->name, &part[i], buffer + (size_t)done * size,
                                     dst.t, e);
            done += box_count(&part[i]);
        }
        if (st == OK)
            ops->upload(q, operand_at(dst, at).p, buffer, (size_t)m * size);
    }
    return st;
}

enum status checkpoint_load(struct checkpoint *c, const struct ops *ops, struct queue *q,
                            const struct piece *pieces, int npieces, struct err *e)
{
    char *buffer = mem_take((size_t)PIECE_CHUNK * 8);
    enum status st = OK;

    for (int i = 0; i < npieces && st == OK; i++)
        st = check_shape(c, pieces[i].p, e);
    for (int k = 0; k < CHECKPOINT_KINDS; k++)
        for (int i = 0; i < npieces && st == OK; i++)
            st = load_piece(c, (enum checkpoint_kind)k, ops, q, &pieces[i], buffer, e);
    ops->sync(q);
    mem_give(buffer);
    return st;
}
