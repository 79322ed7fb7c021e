#include "pipeline/pipeline.h"

#include "base/clock.h"
#include "base/trace.h"

enum { TAG_F = 0, TAG_B = 1 };

static int most_layers(const struct schedule *s, const int *first_layer, int rank)
{
    int most = 0;

    for (int c = 0; c < s->chunks; c++) {
        int stage = s->stage_of[rank * s->chunks + c];
        most = (int)max_i64(most, first_layer[stage + 1] - first_layer[stage]);
    }
    return most;
}

int pipeline_kept_blocks(const struct schedule *train, const int *first_layer, int rank)
{
    return train->slots[rank] * most_layers(train, first_layer, rank);
}

/* Windows that have fewer frames than there are blocks to keep; the others would save nothing. */
static void open_windows(struct pipeline *p, int offload)
{
    int acts = offload && p->nslots * p->most_layers > WINDOW_FRAMES;
    int stash = offload && p->split && p->nstashes * p->most_layers > WINDOW_FRAMES;

    window_init(&p->acts.w, acts ? p->nslots : 0, p->most_layers, 0);
    p->points = window_points(&p->acts.w);
    window_init(&p->stash.w, stash ? p->nstashes : 0, p->most_layers, p->points);
    p->points += window_points(&p->stash.w);
}

void pipeline_init(struct pipeline *p, struct env *e, struct optim *o, const struct schedule *train,
                   const struct schedule *eval, const int *first_layer, int offload)
{
    const struct schedule *full = train ? train : eval;
    int r = e->g->pp_rank, stages = full->pp * full->chunks;

    *p = (struct pipeline){ .env = e,
                            .optim = o,
                            .train = train,
                            .eval = eval,
                            .rank = r,
                            .chunks = full->chunks,
                            .mbs = full->mbs,
                            .most_layers = most_layers(full, first_layer, r),
                            .nslots = full->slots[r],
                            .ngrads = full->grads[r],
                            .nstashes = full->stashes[r] };
    if (eval && eval->slots[r] > p->nslots)
        p->nslots = eval->slots[r];
    p->split = p->nstashes > 0;
    p->nstashes = p->split ? p->nstashes : train != NULL;
    p->stage = mem_take(sizeof *p->stage * (size_t)p->chunks);
    for (int c = 0; c < p->chunks; c++) {
        int s = full->stage_of[r * p->chunks + c], n = first_layer[s + 1] - first_layer[s];
        p->stage[c] = (struct stage){ first_layer[s], n, s == 0, s == stages - 1 };
    }
    p->slots = mem_take(sizeof *p->slots * (size_t)p->nslots);
    p->grads = mem_take(sizeof *p->grads * (size_t)p->ngrads);
    p->stashes = mem_take(sizeof *p->stashes * (size_t)p->nstashes);
    p->mb = mem_take(sizeof *p->mb * (size_t)p->mbs);
    open_windows(p, offload);
    for (int i = 0; i < p->nslots; i++)
        p->slots[i].acts = (struct stage_acts){ .block = mem_take(sizeof(struct block_acts) *
                                                                  (size_t)(p->most_layers + 1)),
                                                .window = p->acts.w.keys > 0 ? &p->acts : NULL,
                                                .slot = i };
    for (int i = 0; i < p->nstashes; i++)
        p->stashes[i] = (struct stage_stash){ .block = mem_take(sizeof(struct block_stash) *
                                                                (size_t)(p->most_layers + 1)),
                                              .window = p->stash.w.keys > 0 ? &p->stash : NULL,
                                              .slot = i };
}

void pipeline_free(struct pipeline *p)
{
    for (int i = 0; i < p->nslots; i++)
        mem_give(p->slots[i].acts.block);
    for (int i = 0; i < p->nstashes; i++)
        mem_give(p->stashes[i].block);
    window_free(&p->acts.w);
    window_free(&p->stash.w);
    mem_give(p->stage);
    mem_give(p->slots);
    mem_give(p->grads);
    mem_give(p->stashes);
    mem_give(p->mb);
    *p = (struct pipeline){ 0 };
}

static struct operand if_asked(struct arena *a, int asked, int64_t n, enum dtype t)
{
    return asked ? operand_take(a, n, t) : OPERAND_NONE;
}

/* What env's forward_use asks for of one micro-batch. */
static void place_asked(struct pipeline *p, struct micro_batch *mb, struct arena *step)
{
    struct env *e = p->env;
    const struct forward_use *u = e->use;
    int64_t rows = u->rows ? u->rows : e->T, kept = e->B * u->kept;
    int head = p->stage[p->chunks - 1].head;

    mb->token_loss = if_asked(step, head && u->token_loss, e->T, e->stat);
    mb->logits = if_asked(step, head && u->logits, rows * e->d.Vp, e->stat);
    if (head && u->rows)
        mb->rows = arena_take(step, sizeof(int32_t) * (size_t)u->rows);
    if (!u->kept)
        return;
    mb->kept = operand_take(step, max_i64(1, p->most_layers) * kept * e->att.ldkv, e->t);
    mb->kept_at = arena_take(step, sizeof(int32_t) * (size_t)e->T);
    mb->kept_place = p->kept_place;
}

void pipeline_place(struct pipeline *p, struct arena *step, struct arena *host)
{
    struct env *e = p->env;
    size_t ints = sizeof(int32_t) * (size_t)e->T;

    stage_windows_place(&p->acts, &p->stash, step, host, e);
    if (!p->train)
        block_acts_place(&p->shared, step, e);
    if (e->use && e->use->kept)
        p->kept_place = arena_take(step, sizeof(int32_t) * (size_t)(e->B * e->use->kept));
    for (int i = 0; i < p->nslots; i++)
        if (p->train)
            stage_acts_place(&p->slots[i].acts, step, e, p->most_layers);
        else
            stage_acts_share(&p->slots[i].acts, step, e, p->most_layers, &p->shared);
    for (int i = 0; i < p->ngrads; i++)
        p->grads[i].g = operand_take(step, e->Ts * e->d.D, e->t);
    for (int i = 0; i < p->nstashes; i++)
        stage_stash_place(&p->stashes[i], step, e, p->split ? p->most_layers : p->most_layers > 0);
    for (int m = 0; m < p->mbs; m++) {
        p->mb[m] = (struct micro_batch){ .ids = arena_take(step, ints),
                                         .labels = arena_take(step, ints),
                                         .place = arena_take(step, ints),
                                         .start = arena_take(step, ints),
                                         .position = arena_take(step, ints) };
        if (e->use)
            place_asked(p, &p->mb[m], step);
    }
    p->loss = arena_take(step, sizeof(double));
}

void pipeline_upload(struct pipeline *p, int m, const int32_t *ids, const int32_t *labels,
                     const int32_t *place, const int32_t *start, const int32_t *position)
{
    const struct micro_batch *mb = &p->mb[m];
    const dptr to[] = { mb->ids, mb->labels, mb->place, mb->start, mb->position };
    const int32_t *const from[] = { ids, labels, place, start, position };

    for (int i = 0; i < COUNT_OF(to); i++)
        p->env->ops->upload(p->env->q, to[i], from[i], sizeof(int32_t) * (size_t)p->env->T);
}

void pipeline_upload_kept(struct pipeline *p, int m, const int32_t *kept_at)
{
    p->env->ops->upload(p->env->q, p->mb[m].kept_at, kept_at, sizeof(int32_t) * (size_t)p->env->T);
}

void pipeline_upload_rows(struct pipeline *p, int m, const int32_t *rows)
{
    if (p->mb[m].rows.p) /* on the last stage */
        p->env->ops->upload(p->env->q, p->mb[m].rows, rows,
                            sizeof(int32_t) * (size_t)p->env->use->rows);
}

void pipeline_upload_places(struct pipeline *p)
{
    const struct env *e = p->env;
    int64_t n = e->use->kept;
    int32_t *place = mem_take(sizeof *place * (size_t)n);

    for (int64_t i = 0; i < n; i++)
        place[i] = (int32_t)i;
    for (int64_t b = 0; b < e->B; b++)
        e->ops->upload(e->q, dptr_at(p->kept_place, b * n * (int64_t)sizeof *place), place,
                       sizeof *place * (size_t)n);
    mem_give(place);
}

/* A transfer from a neighbour: what is waited for here is the pipeline's bubble. */
static void wait_arrival(struct pipeline *p, struct request *r)
{
    double start = clock_now();

    comm_wait(p->env->q, r);
    p->waited += clock_now() - start;
}

/* ---- one function per kind of action ---- */

static struct operand output_of(struct pipeline *p, const struct action *a)
{
    return stage_output(&p->stage[a->chunk], &p->slots[a->slot].acts);
}

static int64_t border(const struct pipeline *p)
{
    return p->env->Ts * p->env->d.D;
}

static void do_forward(struct pipeline *p, const struct action *a)
{
    struct pipeline_slot *s = &p->slots[a->slot];
    struct operand g = OPERAND_NONE;

    wait_arrival(p, &s->in);
    comm_wait(p->env->q, &s->out);
    if (p->training && a->last) {
        comm_wait(p->env->q, &p->grads[a->grad].out);
        g = p->grads[a->grad].g;
    }
    stage_forward(p->env, &p->stage[a->chunk], &s->acts, p->training, g, p->loss, p->scale,
                  &p->mb[a->mb]);
}

static void backward(struct pipeline *p, const struct action *a, int weights)
{
    struct pipeline_grad *g = &p->grads[a->grad];

    wait_arrival(p, &g->in);
    stage_backward(p->env, &p->stage[a->chunk], &p->slots[a->slot].acts,
                   &p->stashes[weights ? 0 : a->stash], g->g, weights, &p->mb[a->mb]);
}

static void do_backward(struct pipeline *p, const struct action *a)
{
    backward(p, a, 1);
}
static void do_input_half(struct pipeline *p, const struct action *a)
{
    backward(p, a, 0);
}

static void do_weight_half(struct pipeline *p, const struct action *a)
{
    stage_grad_weight(p->env, &p->stage[a->chunk], &p->slots[a->slot].acts, &p->stashes[a->stash]);
}

static void do_send_forward(struct pipeline *p, const struct action *a)
{
    struct operand x = output_of(p, a);
    comm_send(p->env->g->pp_comm, p->env->q, x.p, border(p), x.t, a->peer, TAG_F,
              &p->slots[a->slot].out);
}

static void do_receive_forward(struct pipeline *p, const struct action *a)
{
    struct pipeline_slot *s = &p->slots[a->slot];
    comm_wait(p->env->q, &s->out);
    comm_recv(p->env->g->pp_comm, p->env->q, s->acts.in.p, border(p), s->acts.in.t, a->peer, TAG_F,
              &s->in);
}

static void do_send_backward(struct pipeline *p, const struct action *a)
{
    struct pipeline_grad *g = &p->grads[a->grad];
    comm_send(p->env->g->pp_comm, p->env->q, g->g.p, border(p), g->g.t, a->peer, TAG_B, &g->out);
}

static void do_receive_backward(struct pipeline *p, const struct action *a)
{
    struct pipeline_grad *g = &p->grads[a->grad];
    comm_wait(p->env->q, &g->out);
    comm_recv(p->env->g->pp_comm, p->env->q, g->g.p, border(p), g->g.t, a->peer, TAG_B, &g->in);
}

static void do_move_forward(struct pipeline *p, const struct action *a)
{
    struct pipeline_slot *to = &p->slots[a->to_slot];
    struct operand x = output_of(p, a);
    comm_wait(p->env->q, &to->out);
    p->env->ops->copy(p->env->q, to->acts.in.p, x.p, (size_t)border(p) * dtype_size(x.t));
}

static void do_move_backward(struct pipeline *p, const struct action *a)
{
    struct pipeline_grad *from = &p->grads[a->grad], *to = &p->grads[a->to_grad];
    comm_wait(p->env->q, &to->out);
    p->env->ops->copy(p->env->q, to->g.p, from->g.p, (size_t)border(p) * dtype_size(to->g.t));
}

static void do_reduce(struct pipeline *p, const struct action *a)
{
    optim_reduce_chunk(p->optim, a->chunk);
}

struct exec {
    const char *name;
    void (*run)(struct pipeline *p, const struct action *a);
};
static const struct exec exec_table[ACT_KINDS] = {
    [ACT_F] = { "forward", do_forward },
    [ACT_B] = { "backward", do_backward },
    [ACT_I] = { "input gradient", do_input_half },
    [ACT_W] = { "weight gradient", do_weight_half },
    [ACT_SEND_F] = { "send forward", do_send_forward },
    [ACT_RECV_F] = { "receive forward", do_receive_forward },
    [ACT_SEND_B] = { "send backward", do_send_backward },
    [ACT_RECV_B] = { "receive backward", do_receive_backward },
    [ACT_MOVE_F] = { "move forward", do_move_forward },
    [ACT_MOVE_B] = { "move backward", do_move_backward },
    [ACT_REDUCE] = { "reduce", do_reduce },
};

static void run_list(struct pipeline *p, const struct schedule *s)
{
    const struct action *list = s->list[p->rank];

    p->waited = 0;
    p->env->ops->zero(p->env->q, p->loss, sizeof(double));
    for (int i = 0; i < s->n[p->rank]; i++) {
        trace_note(exec_table[list[i].kind].name, list[i].chunk, list[i].mb, p->step);
        exec_table[list[i].kind].run(p, &list[i]);
    }
    for (int i = 0; i < p->nslots; i++) {
        comm_wait(p->env->q, &p->slots[i].in);
        comm_wait(p->env->q, &p->slots[i].out);
    }
    for (int i = 0; i < p->ngrads; i++) {
        comm_wait(p->env->q, &p->grads[i].in);
        comm_wait(p->env->q, &p->grads[i].out);
    }
    window_settle(p->env, &p->acts.w);
    window_settle(p->env, &p->stash.w);
}

void pipeline_train(struct pipeline *p, double scale)
{
    p->scale = scale;
    p->training = 1;
    run_list(p, p->train);
}

void pipeline_evaluate(struct pipeline *p)
{
    p->training = 0;
    run_list(p, p->eval);
}
