#include "optim/offload.h"

#include <math.h>
#include <string.h>

/* Squared sums of my norm blocks, gathered: host_sums holds rank after rank, each bucket after
 * bucket. */
static void gather_squares(struct optim *o)
{
    struct request wait = { 0 };
    int64_t all = 0;

    for (int b = 0; b < o->ps->nbuckets; b++) {
        int64_t k = o->square_first[b], n = o->square_first[b + 1] - k;
        o->ops->square_sums(o->q, dptr_at(o->sums, k * (int64_t)sizeof(double)), o->grads[b],
                            dptr_at(o->blocks_at, k * (int64_t)sizeof(int64_t)),
                            dptr_at(o->blocks_n, k * (int64_t)sizeof(int64_t)), n);
    }
    for (int r = 0; r < o->ranks; r++)
        all += o->square_counts[r];
    comm_all_gather(o->g->grad, o->q, o->sums, o->sums_all, o->square_counts, F64, &wait);
    comm_wait(o->q, &wait);
    o->ops->download(o->q, o->host_sums, o->sums_all, sizeof(double) * (size_t)all);
    o->ops->sync(o->q);
}

/* Where rank r's sums of bucket b start in host_sums. */
static int64_t sums_at(const struct optim *o, int r, int b)
{
    int64_t at = 0;

    for (int i = 0; i < r; i++)
        at += o->square_counts[i];
    for (int i = 0; i < b; i++)
        at += o->slices[(int64_t)i * o->ranks + r].nblocks;
    return at;
}

/* Add the bucket's blocks, in order, to the sum of the tensor that each belongs to. */
static void add_bucket(struct optim *o, int b)
{
    const struct bucket *bucket = &o->ps->b[b];
    int i = bucket->first, tp = o->g->tp;
    int64_t left = ceil_div(o->ps->p[i].count, NORM_BLOCK);

    for (int r = 0; r < o->ranks; r++) {
        int64_t at = sums_at(o, r, b), n = o->slices[(int64_t)b * o->ranks + r].nblocks;
        for (int64_t k = 0; k < n; k++, left--) {
            while (left == 0)
                left = ceil_div(o->ps->p[++i].count, NORM_BLOCK);
            if (o->ps->p[i].writes)
                o->tensor_sums[(int64_t)o->ps->p[i].number * tp + o->g->tp_rank] +=
                    o->host_sums[at + k];
        }
    }
}

double optim_gradient_norm(struct optim *o)
{
    int n = o->ps->total * o->g->tp;
    double sum = 0;

    gather_squares(o);
    memset(o->tensor_sums, 0, sizeof(double) * (size_t)n);
    for (int b = 0; b < o->ps->nbuckets; b++)
        add_bucket(o, b);
    comm_sum_f64(o->g->model, o->tensor_sums, n);
    for (int i = 0; i < n; i++)
        sum += o->tensor_sums[i];
    return sqrt(sum);
}

/* Everybody's slices of the compute weights. */
static void gather_slices(struct optim *o)
{
    for (int b = 0; b < o->ps->nbuckets && o->zero_stage > 0; b++) {
        const struct slice *s = &o->slices[(int64_t)b * o->ranks + o->rank];
        if (o->ps->b[b].tied == 2 && o->alias_of >= 0)
            continue;
        comm_all_gather(o->g->grad, o->q, operand_at(o->weights[b], s->first).p, o->weights[b].p,
                        o->counts + (int64_t)b * o->ranks, o->weight_type, &o->requests[b]);
    }
    for (int b = 0; b < o->ps->nbuckets; b++)
        comm_wait(o->q, &o->requests[b]);
}

void optim_gather_weights(struct optim *o)
{
    if (optim_is_offloaded(o))
        offload_weights(o);
    else if (optim_has_masters(o))
        for (int i = 0; i < o->npieces; i++)
            o->ops->convert(o->q, o->pieces[i].weight, o->pieces[i].master, o->pieces[i].count);
    gather_slices(o);
}

static void update_pieces(struct optim *o, const struct optim_step *s, struct adamw_step a,
                          double norm)
{
    o->ops->upload(o->q, o->norm, &norm, sizeof norm);
    o->ops->clip_factor(o->q, o->clip, o->norm, s->clip, 1 / s->scale);
    for (int i = 0; i < o->npieces; i++) {
        const struct piece *p = &o->pieces[i];
        a.decay = p->p->row->decayed ? s->weight_decay : 0;
        o->ops->adamw(o->q, p->master, p->exp_avg, p->exp_avg_sq, p->grad,
                      optim_has_masters(o) ? p->weight : OPERAND_NONE, o->clip, &a, p->count);
    }
}

void optim_update(struct optim *o, const struct optim_step *s, double norm)
{
    struct adamw_step a = { .beta1 = s->beta1, .beta2 = s->beta2, .eps = s->eps, .lr = s->lr };

    o->t++;
    a.correction1 = 1 - pow(s->beta1, (double)o->t);
    a.correction2 = 1 - pow(s->beta2, (double)o->t);
    if (optim_is_offloaded(o))
        offload_update(o, s, a, norm);
    else
        update_pieces(o, s, a, norm);
    gather_slices(o);
}
