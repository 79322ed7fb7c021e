#include "optim/offload.h"

static int64_t blocks_of(const struct param *p)
{
    return ceil_div(p->count, NORM_BLOCK);
}

/* End of norm block number `block` of bucket b, in elements; blocks do not cross tensors. */
static int64_t block_end(const struct params *ps, const struct bucket *b, int64_t block)
{
    for (int i = b->first; i < b->first + b->n; i++) {
        const struct param *p = &ps->p[i];
        if (block < blocks_of(p))
            return p->at + min_i64(p->count, (block + 1) * NORM_BLOCK);
        block -= blocks_of(p);
    }
    return b->count;
}

/* Runs of whole blocks, as equal as that allows: rank r ends at the first block boundary at or
 * after its share. */
static void slices_cut(struct optim *o, int bucket)
{
    const struct bucket *b = &o->ps->b[bucket];
    struct slice *s = o->slices + (int64_t)bucket * o->ranks;
    int64_t block = 0, at = 0, all = 0;

    for (int i = b->first; i < b->first + b->n; i++)
        all += blocks_of(&o->ps->p[i]);
    for (int r = 0; r < o->ranks; r++) {
        int64_t goal = b->count / o->ranks * (r + 1) + b->count % o->ranks * (r + 1) / o->ranks;
        s[r] = (struct slice){ .first = at, .block = block };
        while (block < all && at < goal)
            at = block_end(o->ps, b, block++);
        s[r].count = at - s[r].first;
        s[r].nblocks = block - s[r].block;
        o->counts[(int64_t)bucket * o->ranks + r] = s[r].count;
    }
}

static int bucket_is_alias(const struct optim *o, int b)
{
    return o->alias_of >= 0 && o->ps->b[b].tied == 2;
}

/* m, v of slice r start at its own offset at stage 0, at 0 above. */
static void pieces_of_slice(struct optim *o, int bucket, int r)
{
    const struct bucket *b = &o->ps->b[bucket];
    const struct slice *s = &o->slices[(int64_t)bucket * o->ranks + r];

    for (int i = b->first; i < b->first + b->n; i++) {
        const struct param *p = &o->ps->p[i];
        int64_t from = max_i64(p->at, s->first);
        int64_t to = min_i64(p->at + p->count, s->first + s->count);
        int64_t in_state = o->zero_stage ? from - s->first : from;
        int64_t in_masters = optim_has_masters(o) ? in_state : from;
        if (from >= to)
            continue;
        o->pieces[o->npieces++] = (struct piece){
            .p = p,
            .first = from - p->at,
            .count = to - from,
            .master = operand_at(o->masters[bucket], in_masters),
            .weight = operand_at(o->weights[bucket], from),
            .exp_avg = operand_at(o->m[bucket], in_state),
            .exp_avg_sq = operand_at(o->v[bucket], in_state),
            .grad = operand_at(o->grads[bucket], from),
            .writes = p->writes && r == o->rank,
        };
    }
}

static void pieces_list(struct optim *o)
{
    o->npieces = 0;
    for (int b = 0; b < o->ps->nbuckets; b++)
        for (int r = 0; r < o->ranks && !bucket_is_alias(o, b); r++)
            if (o->zero_stage == 0 || r == o->rank)
                pieces_of_slice(o, b, r);
}

/* Tensors whose gradients are summed over tp ranks before the data-parallel reduction. */
static void sums_list(struct optim *o)
{
    for (int i = 0; i < o->ps->n; i++) {
        const struct param *p = &o->ps->p[i];
        struct stretch *last = o->ncopies ? &o->copies[o->ncopies - 1] : NULL;
        if (p->copies == 1)
            continue;
        if (p->row->gradient == GRADIENT_PARTIAL) {
            o->partial[o->npartial++] = (struct stretch){ p->bucket, p->at, p->count };
            o->npartial_count += p->count;
        } else if (last && last->bucket == p->bucket && last->at + last->count == p->at) {
            last->count += p->count;
        } else {
            o->copies[o->ncopies++] = (struct stretch){ p->bucket, p->at, p->count };
        }
    }
}

/* Norm blocks of this rank's slices that count (not copies of what another rank counts). */
static void squares_list(struct optim *o)
{
    int64_t n = 0;

    for (int b = 0; b < o->ps->nbuckets; b++) {
        const struct slice *s = &o->slices[(int64_t)b * o->ranks + o->rank];
        int64_t at = s->first;
        o->square_first[b] = n;
        for (int64_t k = 0; k < s->nblocks; k++) {
            int64_t end = block_end(o->ps, &o->ps->b[b], s->block + k);
            o->square_at[n] = at;
            o->square_n[n++] = end - at;
            at = end;
        }
    }
    o->square_first[o->ps->nbuckets] = o->nsquares = n;
}

void optim_init(struct optim *o, const struct ops *ops, const struct ops *state_ops,
                const struct grid *g, const struct params *ps, enum dtype weight_type,
                int zero_stage)
{
    size_t nb = (size_t)ps->nbuckets, slices, blocks = 0;
    int first = -1, copy = -1;

    *o = (struct optim){ .ops = ops,
                         .state_ops = state_ops,
                         .g = g,
                         .ps = ps,
                         .type = weight_type == F64 ? F64 : F32,
                         .weight_type = weight_type,
                         .zero_stage = zero_stage,
                         .ranks = g->dp * g->cp,
                         .rank = g->dp_rank * g->cp + g->cp_rank,
                         .alias_of = -1 };
    for (int b = 0; b < ps->nbuckets; b++) {
        first = ps->b[b].tied == 1 ? b : first;
        copy = ps->b[b].tied == 2 ? b : copy;
    }
    if (copy >= 0)
        o->alias_of = first;
    slices = nb * (size_t)o->ranks;
    for (int i = 0; i < ps->n; i++)
        blocks += (size_t)blocks_of(&ps->p[i]);
    o->slices = mem_take(sizeof *o->slices * slices);
    o->counts = mem_take(sizeof *o->counts * slices);
    for (int b = 0; b < ps->nbuckets; b++)
        slices_cut(o, b);
    o->weights = mem_take(sizeof *o->weights * nb);
    o->grads = mem_take(sizeof *o->grads * nb);
    o->masters = mem_take(sizeof *o->masters * nb);
    o->m = mem_take(sizeof *o->m * nb);
    o->v = mem_take(sizeof *o->v * nb);
    o->requests = mem_take(sizeof *o->requests * nb);
    o->pieces = mem_take(sizeof *o->pieces * (size_t)ps->n * (size_t)o->ranks);
    o->partial = mem_take(sizeof *o->partial * (size_t)ps->n);
    o->copies = mem_take(sizeof *o->copies * (size_t)ps->n);
    o->square_at = mem_take(sizeof *o->square_at * blocks);
    o->square_n = mem_take(sizeof *o->square_n * blocks);
    o->square_first = mem_take(sizeof *o->square_first * (nb + 1));
    o->square_counts = mem_take(sizeof *o->square_counts * (size_t)o->ranks);
    o->host_sums = mem_take(sizeof *o->host_sums * blocks);
    o->tensor_sums = mem_take(sizeof *o->tensor_sums * (size_t)ps->total * (size_t)g->tp);
    sums_list(o);
    squares_list(o);
    for (int r = 0; r < o->ranks; r++)
        for (int b = 0; b < ps->nbuckets; b++)
            o->square_counts[r] += o->slices[(int64_t)b * o->ranks + r].nblocks;
}

void optim_init_weights(struct optim *o, const struct ops *ops, const struct grid *g,
                        const struct params *ps, enum dtype weight_type)
{
    optim_init(o, ops, ops, g, ps, weight_type, 0);
    o->type = weight_type;
    o->weights_only = 1;
}

static void place_weights(struct optim *o, struct arena *keep)
{
    for (int b = 0; b < o->ps->nbuckets; b++)
        o->masters[b] = o->weights[b] = bucket_is_alias(o, b)
                                            ? o->weights[o->alias_of]
                                            : operand_take(keep, o->ps->b[b].count, o->weight_type);
    pieces_list(o);
}

void optim_place(struct optim *o, struct arena *keep, struct arena *state)
{
    int64_t blocks = 0;

    if (o->weights_only) {
        place_weights(o, keep);
        return;
    }
    for (int b = 0; b < o->ps->nbuckets; b++) {
        int64_t n = o->ps->b[b].count;
        int64_t mine = o->zero_stage ? o->slices[(int64_t)b * o->ranks + o->rank].count : n;
        int alias = bucket_is_alias(o, b);
        o->weights[b] = alias ? o->weights[o->alias_of] : operand_take(keep, n, o->weight_type);
        o->masters[b] =
            alias || !optim_has_masters(o) ? o->weights[b] : operand_take(state, mine, o->type);
        o->grads[b] = operand_take(keep, n, o->type);
        o->m[b] = operand_take(state, alias ? 0 : mine, o->type);
        o->v[b] = operand_take(state, alias ? 0 : mine, o->type);
    }
    for (int r = 0; r < o->ranks; r++)
        blocks += o->square_counts[r];
    o->packed = operand_take(keep, o->npartial_count, o->type);
    o->sums = arena_take(keep, sizeof(double) * (size_t)o->nsquares);
    o->sums_all = arena_take(keep, sizeof(double) * (size_t)blocks);
    o->blocks_at = arena_take(keep, sizeof(int64_t) * (size_t)o->nsquares);
    o->blocks_n = arena_take(keep, sizeof(int64_t) * (size_t)o->nsquares);
    o->norm = arena_take(keep, sizeof(double));
    o->clip = arena_take(keep, sizeof(double));
    offload_place(o, state);
    pieces_list(o);
}

void optim_upload_lists(struct optim *o)
{
    size_t bytes = sizeof(int64_t) * (size_t)o->nsquares;

    if (o->weights_only)
        return;
    o->ops->upload(o->q, o->blocks_at, o->square_at, bytes);
    o->ops->upload(o->q, o->blocks_n, o->square_n, bytes);
}

void optim_free(struct optim *o)
{
    void *const all[] = {
        o->slices,   o->counts,       o->weights,       o->grads,     o->masters,    o->m,
        o->v,        o->requests,     o->pieces,        o->partial,   o->copies,     o->square_at,
        o->square_n, o->square_first, o->square_counts, o->host_sums, o->tensor_sums
    };
    for (int i = 0; i < COUNT_OF(all); i++)
        mem_give(all[i]);
    *o = (struct optim){ 0 };
}
