#include "layers/layer.h"

#include <math.h>

#include "base/err.h"

enum { HEAD_BYTES = 64 << 20 }; /* logits held at a time */

void env_init(struct env *e, const struct ops *ops, const struct grid *g, const struct params *ps,
              int64_t B, int64_t S, enum dtype t, int threads, const struct forward_use *use)
{
    const struct dims *d = &ps->d;
    int b = 0;

    *e = (struct env){ .ops = ops,
                       .g = g,
                       .ps = ps,
                       .d = *d,
                       .B = B,
                       .t = t,
                       .stat = t == F64 ? F64 : F32,
                       .grad = t == F64 ? F64 : F32,
                       .threads = threads,
                       .use = use };
    while (b < ps->nbuckets && ps->b[b].layer < 0)
        b++;
    e->first_layer = b < ps->nbuckets ? ps->b[b].layer : 0;
    e->att = (struct attention_shape){ .B = (int)B,
                                       .H = d->Hl,
                                       .G = d->Gl,
                                       .K = d->K,
                                       .ldq = d->qkv,
                                       .ldkv = d->qkv,
                                       .ldo = (int64_t)d->Hl * d->K,
                                       .scale = 1 / sqrt((double)d->K) };
    if (use && use->kept) {
        e->att.Tk = (int)use->kept;
        e->att.ldkv = (int64_t)2 * d->Gl * d->K;
    }
    env_use_length(e, S);
}

void env_use_length(struct env *e, int64_t S)
{
    int64_t row = e->d.Vl * (int64_t)dtype_size(e->t);

    BUG_IF(e->B * S % (e->g->cp * e->g->tp) != 0);
    e->S = S;
    e->T = e->B * S / e->g->cp;
    e->Ts = e->T / e->g->tp;
    e->att.Tq = (int)(S / e->g->cp);
    if (!e->use || !e->use->kept)
        e->att.Tk = e->att.Tq;
    e->head_rows = min_i64(e->T, max_i64(64, min_i64(512, HEAD_BYTES / row)));
}

void env_add_length(struct env *e, int64_t S)
{
    BUG_IF(S > e->S || e->nothers == COUNT_OF(e->other));
    e->other[e->nothers++] = S;
}

/* The most of all lengths: kernels may differ. */
static size_t attention_scratch(const struct env *e)
{
    size_t most = e->ops->attention_scratch(&e->att, e->t, e->threads), bytes;

    for (int i = 0; i < e->nothers; i++) {
        struct attention_shape s = e->att;

        s.Tq = s.Tk = (int)(e->other[i] / e->g->cp);
        bytes = e->ops->attention_scratch(&s, e->t, e->threads);
        most = bytes > most ? bytes : most;
    }
    return most;
}

void env_place(struct env *e, struct arena *keep, struct arena *scratch, int64_t positions,
               int last_stage)
{
    const struct dims *d = &e->d;
    struct scratch *s = &e->s;
    int train = e->use == NULL;
    size_t top;

    e->rope = operand_take(keep, positions * d->K, e->stat);
    s->wide = operand_take(scratch, e->g->tp > 1 ? e->T * d->D : 0, e->t);
    s->partial = operand_take(scratch, e->g->tp > 1 ? e->T * d->D : 0, e->t);
    top = arena_mark(scratch);
    s->r = operand_take(scratch, e->Ts * d->D, e->t);
    s->dh = operand_take(scratch, train * e->T * d->Fl, e->t);
    s->dout = operand_take(scratch, train * e->T * e->att.ldo, e->t);
    s->delta = operand_take(scratch, train * e->T * d->Hl, e->stat);
    s->attention = arena_take(scratch, attention_scratch(e));
    if (!last_stage)
        return;
    arena_rewind(scratch, top); /* the head runs when no block does */
    s->logits = operand_take(scratch, e->head_rows * d->Vl, e->stat);
    s->dlogits =
        e->t == e->stat || !train ? s->logits : operand_take(scratch, e->head_rows * d->Vl, e->t);
    s->dhead = operand_take(scratch, train * e->T * d->D, e->t);
    s->nf = operand_take(scratch, e->Ts * d->D, e->t);
    s->rstd_f = operand_take(scratch, e->Ts, e->stat);
    s->stats = operand_take(scratch, e->head_rows * 3, e->stat);
    s->stats_all = operand_take(scratch, e->head_rows * 3 * e->g->tp, e->stat);
    s->lse = operand_take(scratch, e->head_rows, e->stat);
    s->picked = operand_take(scratch, train ? 0 : e->use->rows * d->D, e->t);
}

static double rope_frequency(const struct rope_scaling *s, double f)
{
    double wave = 2 * acos(-1.0) / f, blend;

    if (s->type == ROPE_LINEAR)
        return f / s->factor;
    if (s->type != ROPE_LLAMA3 || wave < (double)s->original / s->high)
        return f;
    if (wave > (double)s->original / s->low)
        return f / s->factor;
    blend = ((double)s->original / wave - s->low) / (s->high - s->low);
    return (1 - blend) * f / s->factor + blend * f;
}

void env_fill_rope(struct env *e, const struct rope_scaling *s, int64_t positions)
{
    int K = e->d.K;
    double *row = mem_take(sizeof *row * (size_t)K);
    void *out = mem_take((size_t)K * dtype_size(e->stat));

    for (int64_t p = 0; p < positions; p++) {
        for (int i = 0; i < K / 2; i++) {
            double a = (double)p * rope_frequency(s, pow(e->d.rope_theta, -2.0 * i / K));
            row[i] = cos(a);
            row[K / 2 + i] = sin(a);
        }
        dtype_convert(out, e->stat, row, F64, K);
        e->ops->upload(e->q, operand_at(e->rope, p * K).p, out, (size_t)K * dtype_size(e->stat));
    }
    e->ops->sync(e->q);
    mem_give(row);
    mem_give(out);
}

static void same_counts(const struct env *e, int64_t *counts)
{
    for (int i = 0; i < e->g->tp; i++)
        counts[i] = e->Ts * e->d.D;
}

struct operand tp_gather(struct env *e, struct operand in, struct operand buf)
{
    int64_t counts[MAX_TP];
    struct request r = { 0 };

    if (e->g->tp == 1)
        return in;
    same_counts(e, counts);
    comm_all_gather(e->g->tp_comm, e->q, in.p, buf.p, counts, in.t, &r);
    comm_wait(e->q, &r);
    return buf;
}

struct operand tp_partial(struct env *e, struct operand out)
{
    return e->g->tp == 1 ? out : e->s.partial;
}

struct operand tp_mine(const struct env *e, struct operand wide)
{
    return operand_at(wide, e->g->tp_rank * e->Ts * e->d.D);
}

void tp_scatter(struct env *e, struct operand partial, struct operand out)
{
    int64_t counts[MAX_TP];
    struct request r = { 0 };

    if (e->g->tp == 1)
        return;
    same_counts(e, counts);
    comm_reduce_scatter(e->g->tp_comm, e->q, partial.p, out.p, counts, out.t, &r);
    comm_wait(e->q, &r);
}
