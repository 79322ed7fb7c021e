#include "tests/checkpoint_scene.h"

#include "base/arena.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

struct dims scene_dims(int tp)
{
    struct dims d = { .D = 12,
                      .F = 16,
                      .V = 13,
                      .H = 4,
                      .G = 2,
                      .K = 6,
                      .L = 3,
                      .tp = tp,
                      .bias = 1,
                      .tied = 0,
                      .eps = 1e-5,
                      .rope_theta = 10000,
                      .init_range = 0.02 };

    d.Vp = ceil_div(d.V, tp) * tp;
    d.Vl = d.Vp / tp;
    d.Fl = d.F / tp;
    d.Hl = d.H / tp;
    d.Gl = d.G >= tp ? d.G / tp : 1;
    d.kv_copies = d.G >= tp ? 1 : tp / d.G;
    d.qkv = (int64_t)(d.Hl + 2 * d.Gl) * d.K;
    return d;
}

/* The input that such a model would come from. */
const char scene_deck[] =
    "&run\n  directory = 'run'\n/\n"
    "&train\n  train_steps = 10\n  sequence_length = 32\n  global_batch_size = 32\n/\n"
    "&model\n  model_type = 'qwen2'\n  vocab_size = 13\n  hidden_size = 12\n  intermediate_size = "
    "16\n"
    "  num_hidden_layers = 3\n  num_attention_heads = 4\n  num_key_value_heads = 2\n  head_dim = "
    "6\n"
    "  max_position_embeddings = 64\n  rope_theta = 500000.0\n/\n"
    "&data\n  train = 'train.h5'\n/\n&optim\n  learning_rate = 1e-3\n/\n";

double scene_value(int kind, int number, int64_t index, uint64_t salt)
{
    return (double)(rng_u64(salt + 1, (uint64_t)(kind * 1000 + number), (uint64_t)index) %
                    1000003) /
               1024 -
           400;
}

void scene_put(struct operand o, int64_t i, double x)
{
    if (o.t == F64)
        ((double *)(void *)o.p.p)[i] = x;
    else
        ((float *)(void *)o.p.p)[i] = (float)x;
}

static double scene_get(struct operand o, int64_t i)
{
    return o.t == F64 ? ((double *)(void *)o.p.p)[i] : (double)((float *)(void *)o.p.p)[i];
}

static struct operand scene_operand(const struct piece *p, int kind)
{
    return kind == 0 ? p->master : kind == 1 ? p->exp_avg : p->exp_avg_sq;
}

/* The global index of the local element, -1: padding. */
static int64_t scene_global(const struct param *p, int64_t local)
{
    int64_t at = 0, index[3] = { 0 };

    for (int d = p->nd - 1; d >= 0; d--) {
        index[d] = local % p->local[d];
        local /= p->local[d];
    }
    for (int d = 0; d < p->nd; d++) {
        if (index[d] >= p->box.ext[d])
            return -1;
        at = at * p->global[d] + p->box.off[d] + index[d];
    }
    return at;
}

static void scene_add_piece(struct scene *s, const struct param *p, int64_t first, int64_t count,
                            enum dtype t, int writes)
{
    size_t size = dtype_size(t), n = (size_t)s->n;
    char *m = mem_take(3 * (size_t)count * size + 1);
    struct piece *q;

    s->piece = mem_grow(s->piece, n * sizeof *s->piece, (n + 1) * sizeof *s->piece);
    s->memory = mem_grow(s->memory, n * sizeof *s->memory, (n + 1) * sizeof *s->memory);
    s->memory[s->n] = m;
    q = &s->piece[s->n++];
    *q = (struct piece){ .p = p, .first = first, .count = count, .writes = writes };
    q->master = (struct operand){ { m }, t };
    q->exp_avg = operand_at(q->master, count);
    q->exp_avg_sq = operand_at(q->master, 2 * count);
}

/* What rank (tp_rank, stage, dp_rank) holds; its slice is every dp-th piece. Other slices are there
 * too if all. */
void scene_add_rank(struct scene *s, const struct layout *l, int tp_rank, int stage, int dp_rank,
                    enum dtype t, int all)
{
    struct dims d = scene_dims(l->tp);
    struct params *ps;
    int first_layer[8];

    for (int i = 0; i <= l->pp; i++)
        first_layer[i] = d.L * i / l->pp;
    s->ps = mem_grow(s->ps, (size_t)s->nps * sizeof *s->ps, (size_t)(s->nps + 1) * sizeof *s->ps);
    ps = &s->ps[s->nps++];
    params_build(ps, &d, tp_rank, l->pp, first_layer, &stage, 1);
    for (int i = 0; i < ps->n; i++) {
        int k = 0;

        for (int64_t at = 0; at < ps->p[i].count; at += l->cut, k++)
            if (all || k % l->dp == dp_rank)
                scene_add_piece(s, &ps->p[i], at, min_i64(l->cut, ps->p[i].count - at), t,
                                ps->p[i].writes && k % l->dp == dp_rank);
    }
}

/* Every rank's in one process. */
struct scene scene_whole(const struct layout *l, enum dtype t)
{
    struct scene s = { 0 };

    for (int stage = 0; stage < l->pp; stage++)
        for (int dp = 0; dp < l->dp; dp++)
            for (int tp = 0; tp < l->tp; tp++)
                scene_add_rank(&s, l, tp, stage, dp, t, 0);
    return s;
}

/* Padding gets NaN, so that one which is saved is noticed. */
void scene_fill(struct scene *s, uint64_t salt)
{
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < 3; k++)
            for (int64_t j = 0; j < s->piece[i].count; j++) {
                int64_t at = scene_global(s->piece[i].p, s->piece[i].first + j);

                scene_put(scene_operand(&s->piece[i], k), j,
                          at < 0 ? NAN : scene_value(k, s->piece[i].p->number, at, salt));
            }
}

/* As filled, padding 0. */
int scene_holds(const struct scene *s, uint64_t salt)
{
    int good = 1;

    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < 3; k++)
            for (int64_t j = 0; j < s->piece[i].count; j++) {
                int64_t at = scene_global(s->piece[i].p, s->piece[i].first + j);
                struct operand o = scene_operand(&s->piece[i], k);
                double x = at < 0 ? 0 : scene_value(k, s->piece[i].p->number, at, salt);

                good &= scene_get(o, j) == (o.t == F64 ? x : (double)(float)x);
            }
    return good;
}

void scene_free(struct scene *s)
{
    for (int i = 0; i < s->n; i++)
        mem_give(s->memory[i]);
    for (int i = 0; i < s->nps; i++)
        params_free(&s->ps[i]);
    mem_give(s->memory);
    mem_give(s->piece);
    mem_give(s->ps);
    *s = (struct scene){ 0 };
}
