#include "model/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"

const struct param_row param_rows[P_N] = {
#define PARAM(id, layers, d0, d1, d2, tp, ex, grad, place, init, dec, fuse, hf) \
    [P_##id] = { #id,                                                           \
                 hf,                                                            \
                 LAYERS_##layers,                                               \
                 { DIM_##d0, DIM_##d1, DIM_##d2 },                              \
                 tp,                                                            \
                 ex,                                                            \
                 GRADIENT_##grad,                                               \
                 PLACE_##place,                                                 \
                 INIT_##init,                                                   \
                 dec,                                                           \
                 fuse },
#include "model/params.def"
#undef PARAM
};

enum { RNG_INIT = 1 }; /* the kind of randomness, above the tensor's number */

struct dims dims_of(const struct config *c, int tp)
{
    struct dims d = { .D = c->model.hidden_size,
                      .F = c->model.intermediate_size,
                      .V = c->model.vocab_size,
                      .H = (int)c->model.num_attention_heads,
                      .G = (int)c->model.num_key_value_heads,
                      .K = (int)c->model.head_dim,
                      .L = (int)c->model.num_hidden_layers,
                      .tp = tp };

    d.G = d.G ? d.G : d.H;
    d.K = d.K ? d.K : (int)(d.D / d.H);
    d.Vp = ceil_div(d.V, tp) * tp;
    d.Vl = d.Vp / tp;
    d.Fl = d.F / tp;
    d.Hl = d.H / tp;
    d.Gl = d.G >= tp ? d.G / tp : 1;
    d.kv_copies = d.G >= tp ? 1 : tp / d.G;
    d.qkv = (int64_t)(d.Hl + 2 * d.Gl) * d.K;
    d.obias = c->model.attention_bias;
    d.bias = d.obias || c->model.model_type == MODEL_QWEN2;
    d.mlpbias = c->model.mlp_bias;
    d.qknorm = c->model.model_type == MODEL_QWEN3;
    d.tied = c->model.tie_word_embeddings;
    d.eps = c->model.rms_norm_eps;
    d.rope_theta = c->model.rope_theta;
    d.init_range = c->model.initializer_range;
    return d;
}

static int row_exists(const struct dims *d, const struct param_row *row)
{
    const int has[] = {
        [LAYERS_EVERY] = 1,          [LAYERS_DENSE] = 1,        [LAYERS_MOE] = 0,
        [LAYERS_BIAS] = d->bias,     [LAYERS_OBIAS] = d->obias, [LAYERS_MLPBIAS] = d->mlpbias,
        [LAYERS_QKNORM] = d->qknorm, [LAYERS_UNTIED] = !d->tied
    };
    return has[row->layers];
}

/* The part of one tensor that tp rank r holds. */
static void param_cut(struct param *p, const struct dims *d, int r)
{
    const struct param_row *row = p->row;
    const int64_t whole[DIM_N] = { [DIM_VOCAB] = d->V,
                                   [DIM_HIDDEN] = d->D,
                                   [DIM_QDIM] = (int64_t)d->H * d->K,
                                   [DIM_KVDIM] = (int64_t)d->G * d->K,
                                   [DIM_HEAD] = d->K,
                                   [DIM_FFN] = d->F };
    const int64_t part[DIM_N] = { [DIM_VOCAB] = d->Vl,
                                  [DIM_QDIM] = (int64_t)d->Hl * d->K,
                                  [DIM_KVDIM] = (int64_t)d->Gl * d->K,
                                  [DIM_FFN] = d->Fl };

    p->count = 1;
    for (p->nd = 0; p->nd < 3 && row->dim[p->nd] != DIM_ONE; p->nd++) {
        int a = p->nd, cut = a == row->tp_axis;
        enum param_dim dim = row->dim[a];
        int64_t at = cut ? (dim == DIM_KVDIM ? r / d->kv_copies : r) * part[dim] : 0;
        p->global[a] = whole[dim];
        p->local[a] = cut ? part[dim] : whole[dim];
        p->box.off[a] = min_i64(at, p->global[a]);
        p->box.ext[a] = min_i64(p->local[a], p->global[a] - p->box.off[a]);
        p->count *= p->local[a];
    }
    p->box.nd = p->nd;
    p->writes = row->gradient == GRADIENT_PARTIAL  ? r == 0
                : row->gradient == GRADIENT_COPIES ? r % d->kv_copies == 0
                                                   : 1;
    p->copies = row->gradient == GRADIENT_PARTIAL  ? d->tp
                : row->gradient == GRADIENT_COPIES ? d->kv_copies
                                                   : 1;
}

static void bucket_open(struct params *ps, int layer, int tied, int chunk)
{
    ps->b[ps->nbuckets++] =
        (struct bucket){ .first = ps->n, .layer = layer, .tied = tied, .chunk = chunk };
}

static void bucket_add(struct params *ps, enum param_id id, int layer, int tp_rank, int number)
{
    struct bucket *b = &ps->b[ps->nbuckets - 1];
    struct param *p = &ps->p[ps->n++];

    *p = (struct param){ .row = &param_rows[id],
                         .id = id,
                         .layer = layer,
                         .number = number,
                         .bucket = ps->nbuckets - 1,
                         .at = b->count };
    snprintf(p->name, sizeof p->name, p->row->hf_name, layer);
    param_cut(p, &ps->d, tp_rank);
    p->writes = p->writes && b->tied != 2;
    b->count += p->count;
    b->n++;
}

static int rows_of(const struct dims *d, enum param_place place)
{
    int n = 0;
    for (int i = 0; i < P_N; i++)
        n += param_rows[i].place == place && row_exists(d, &param_rows[i]);
    return n;
}

/* All rows of one place into the open bucket; *number is the first tensor's and moves on. */
static void bucket_fill(struct params *ps, enum param_place place, int layer, int tp_rank,
                        int number)
{
    for (int i = 0; i < P_N; i++)
        if (param_rows[i].place == place && row_exists(&ps->d, &param_rows[i]))
            bucket_add(ps, (enum param_id)i, layer, tp_rank, number++);
}

void params_build(struct params *ps, const struct dims *d, int tp_rank, int stages,
                  const int *first_layer, const int *stage, int chunks)
{
    int nfirst = rows_of(d, PLACE_FIRST), nblock = rows_of(d, PLACE_BLOCK);
    int nlast = rows_of(d, PLACE_LAST), held = 0;
    int64_t whole;

    for (int c = 0; c < chunks; c++)
        held += first_layer[stage[c] + 1] - first_layer[stage[c]];
    *ps = (struct params){ .d = *d, .total = nfirst + nblock * d->L + nlast };
    ps->p = mem_take(sizeof *ps->p * (size_t)(nfirst * 2 + nblock * held + nlast));
    ps->b = mem_take(sizeof *ps->b * (size_t)(held + 3));
    for (int c = 0; c < chunks; c++) {
        int s = stage[c];
        if (s == 0) {
            bucket_open(ps, -1, d->tied, c);
            bucket_fill(ps, PLACE_FIRST, -1, tp_rank, 0);
        }
        for (int l = first_layer[s]; l < first_layer[s + 1]; l++) {
            bucket_open(ps, l, 0, c);
            bucket_fill(ps, PLACE_BLOCK, l, tp_rank, nfirst + nblock * l);
        }
        if (s == stages - 1) {
            bucket_open(ps, -1, 0, c);
            bucket_fill(ps, PLACE_LAST, -1, tp_rank, nfirst + nblock * d->L);
            if (d->tied) {
                bucket_open(ps, -1, 2, c);
                bucket_fill(ps, PLACE_FIRST, -1, tp_rank, 0);
            }
        }
    }
    for (int i = 0; i < P_N; i++) {
        struct param p = { .row = &param_rows[i] };
        struct dims one = *d;
        one.tp = one.kv_copies = 1;
        if (!row_exists(d, p.row))
            continue;
        param_cut(&p, &one, 0);
        whole = 1;
        for (int a = 0; a < p.nd; a++)
            whole *= p.global[a];
        ps->total_count += whole * (p.row->place == PLACE_BLOCK ? d->L : 1);
    }
}

void params_build_whole(struct params *ps, const struct dims *d)
{
    struct dims one = *d;
    int first[2] = { 0, d->L }, stage = 0;

    one.tp = one.kv_copies = 1;
    one.Hl = d->H;
    one.Gl = d->G;
    one.Fl = d->F;
    one.Vp = one.Vl = d->V;
    one.qkv = (int64_t)(d->H + 2 * d->G) * d->K;
    params_build(ps, &one, 0, 1, first, &stage, 1);
    if (d->tied) { /* the copy at the last stage is no tensor of its own */
        ps->nbuckets--;
        ps->n -= ps->b[ps->nbuckets].n;
    }
}

void params_free(struct params *ps)
{
    mem_give(ps->p);
    mem_give(ps->b);
    *ps = (struct params){ 0 };
}

const struct param *params_find(const struct params *ps, enum param_id id, int layer)
{
    for (int i = 0; i < ps->n; i++)
        if (ps->p[i].id == id && ps->p[i].layer == layer)
            return &ps->p[i];
    return NULL;
}

void param_init_values(const struct dims *d, const struct param *p, uint64_t seed,
                       const struct box *what, double *out)
{
    double std = p->row->init == INIT_RESIDUAL ? d->init_range / sqrt(2.0 * d->L) : d->init_range;
    int64_t n = box_count(what), width = what->ext[what->nd - 1];
    uint64_t key = (uint64_t)RNG_INIT << 32 | (uint64_t)p->number;

    if (p->row->init == INIT_ONES || p->row->init == INIT_ZEROS) {
        for (int64_t i = 0; i < n; i++)
            out[i] = p->row->init == INIT_ONES;
        return;
    }
    BUG_IF(what->nd != 2);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        int64_t row = what->off[0] + i / width, col = what->off[1] + i % width;
        out[i] = std * rng_normal(seed, key, (uint64_t)(row * p->global[1] + col));
    }
}
