#include "train/setup.h"

#include "compute/choose.h"
#include "model/geometry.h"

static const enum dtype compute_types[] = {
    [CONFIG_FLOAT32] = F32, [CONFIG_FLOAT64] = F64, [CONFIG_BFLOAT16] = BF16, [CONFIG_FLOAT16] = F16
};

static enum status build_schedule(struct setup *s, struct err *e)
{
    const struct config *c = s->c;
    int chunks = (int)c->parallel.virtual_stages;
    enum status st =
        schedule_build(&s->train, schedule_names[c->parallel.schedule], s->g.pp, chunks, s->mbs, e);
    if (st == OK)
        st = schedule_build_forward(&s->eval, &s->train, s->mbs, e);
    return st;
}

static void split_layers(struct setup *s)
{
    const struct config_ints *by_hand = &s->c->parallel.layers_per_stage;
    double layer, embedding, head;

    s->stages = s->g.pp * (int)s->c->parallel.virtual_stages;
    s->first_layer = mem_take(sizeof *s->first_layer * (size_t)(s->stages + 1));
    if (by_hand->n == s->stages && !(by_hand->n == 1 && by_hand->v[0] == 0)) {
        for (int i = 0; i < s->stages; i++)
            s->first_layer[i + 1] = s->first_layer[i] + (int)by_hand->v[i];
        return;
    }
    geometry_stage_costs(&s->d, s->S, &layer, &embedding, &head);
    schedule_split_layers(s->d.L, s->stages, layer, embedding, head, s->first_layer);
}

enum status setup_find_device(const struct config *c, int local_rank, struct err *why)
{
    const struct ops *device = ops_device();

    if (!device)
        return err_set(why, E_RESOURCE, "this build has no CUDA");
    if (c->debug.backend != BACKEND_AUTO)
        return err_set(why, E_RESOURCE, "debug.backend is given");
    if (c->train.dtype == CONFIG_FLOAT64)
        return err_set(why, E_RESOURCE, "float64 is not for GPUs");
    return device->probe(local_rank, why);
}

enum status setup_choose_ops(const struct config *c, const struct ops **ops, struct err *e)
{
    struct config_word backend = config_word(KEY_debug_backend, c->debug.backend);
    struct config_word isa = config_word(KEY_debug_isa, c->debug.isa);

    return ops_choose(ops, c->run.device == DEVICE_CUDA ? "cuda" : backend.s, isa.s,
                      compute_types[c->train.dtype], e);
}

/* Who updates: the backend itself or, with the optimiser's state in host memory, the CPU's. */
static enum status choose_state_ops(const struct setup *s, const struct ops **ops, struct err *e)
{
    struct config_word isa = config_word(KEY_debug_isa, s->c->debug.isa);

    *ops = s->ops;
    if (s->c->train.offload != OFFLOAD_OPTIMIZER)
        return OK;
    return ops_choose(ops, "cpu", isa.s, F32, e);
}

/* Offloading of activations must leave something to a rank's host. */
static enum status check_offload(const struct setup *s, struct err *e)
{
    int64_t most = 0;

    for (int r = 0; r < s->g.pp; r++)
        most = max_i64(most, pipeline_kept_blocks(&s->train, s->first_layer, r));
    if (s->c->train.offload != OFFLOAD_ACTIVATIONS || most > WINDOW_FRAMES)
        return OK;
    return err_set(
        e, E_INPUT,
        "`offload` = 'activations' in &train has no effect: a rank keeps the activations "
        "of %d block%s at a time (blocks of a stage x micro-batches in flight), and %d "
        "stay on the device anyway: leave it out",
        (int)most, most == 1 ? "" : "s", WINDOW_FRAMES);
}

/* Stages' lengths, and that of evaluation. */
static void add_lengths(struct setup *s)
{
    env_add_length(&s->env, s->c->train.sequence_length);
    for (int k = 0; k < s->c->nstages; k++)
        if (s->c->stages[k].sequence_length)
            env_add_length(&s->env, s->c->stages[k].sequence_length);
}

enum status setup_build(struct setup *s, const struct config *c, const struct grid *g,
                        const struct ops *ops, int threads, const struct forward_use *use,
                        struct err *e)
{
    const struct ops *state_ops;
    int *stage;
    enum status st;

    *s = (struct setup){ .c = c,
                         .g = *g,
                         .use = use,
                         .ops = ops,
                         .threads = threads,
                         .t = compute_types[c->train.dtype],
                         .d = dims_of(c, g->tp),
                         .S = config_longest_sequence(c),
                         .B = c->train.micro_batch_size,
                         .GB = c->train.global_batch_size };
    s->mbs = (int)(s->GB / (s->B * g->dp));
    s->positions = use && use->kept ? use->kept : s->S;
    split_layers(s);
    if ((st = build_schedule(s, e)) != OK || (st = check_offload(s, e)) != OK)
        return st;
    stage = s->train.stage_of + g->pp_rank * s->train.chunks;
    params_build(&s->params, &s->d, g->tp_rank, s->stages, s->first_layer, stage, s->train.chunks);
    env_init(&s->env, ops, &s->g, &s->params, s->B, s->S, s->t, threads, use);
    add_lengths(s);
    if ((st = choose_state_ops(s, &state_ops, e)) != OK)
        return st;
    if (use)
        optim_init_weights(&s->optim, ops, &s->g, &s->params, s->t);
    else
        optim_init(&s->optim, ops, state_ops, &s->g, &s->params, s->t, (int)c->parallel.zero_stage);
    s->env.weights = s->optim.weights;
    s->env.grads = s->optim.grads;
    pipeline_init(&s->pipe, &s->env, use ? NULL : &s->optim, use ? NULL : &s->train, &s->eval,
                  s->first_layer, c->train.offload == OFFLOAD_ACTIVATIONS);
    return OK;
}

void setup_use_length(struct setup *s, int64_t S)
{
    s->S = S;
    env_use_length(&s->env, S);
}

static void place(struct setup *s)
{
    int last = 0;

    for (int c = 0; c < s->pipe.chunks; c++)
        last |= s->pipe.stage[c].head;
    optim_place(&s->optim, &s->keep, optim_is_offloaded(&s->optim) ? &s->state : &s->keep);
    pipeline_place(&s->pipe, &s->step, &s->saved);
    env_place(&s->env, &s->keep, &s->scratch, s->positions, last);
}

void setup_measure(struct setup *s)
{
    arena_measure(&s->keep, "weights, gradients, optimiser", s->ops->memory);
    arena_measure(&s->step, "activations", s->ops->memory);
    arena_measure(&s->scratch, "scratch", s->ops->memory);
    arena_measure(&s->state, "optimiser in host memory", s->ops->pinned);
    arena_measure(&s->saved, "activations in host memory", s->ops->pinned);
    place(s);
}

size_t setup_host_bytes(const struct setup *s)
{
    return s->state.peak + s->saved.peak;
}

size_t setup_bytes(const struct setup *s)
{
    return s->keep.peak + s->step.peak + s->scratch.peak;
}

enum status setup_open(struct setup *s, struct queue *q, struct err *e)
{
    struct arena *const arenas[] = { &s->keep, &s->step, &s->scratch, &s->state, &s->saved };
    enum status st;

    setup_measure(s);
    for (int i = 0; i < COUNT_OF(arenas); i++)
        if (arenas[i]->peak > 0 && (st = arena_open(arenas[i], e)) != OK)
            return st;
    if (s->pipe.points > 0 && (st = s->ops->lanes->open(q, s->pipe.points, e)) != OK)
        return st;
    s->env.q = s->optim.q = s->optim.state_q = q;
    if (optim_is_offloaded(&s->optim)) {
        if ((st = s->optim.state_ops->queue_create(&s->state_q, s->threads, 0, e)) != OK)
            return st;
        s->optim.state_q = s->state_q;
    }
    place(s);
    for (int i = 0; i < COUNT_OF(arenas); i++)
        arena_seal(arenas[i]);
    optim_upload_lists(&s->optim);
    return OK;
}

void setup_free(struct setup *s)
{
    arena_close(&s->keep);
    arena_close(&s->step);
    arena_close(&s->scratch);
    arena_close(&s->state);
    arena_close(&s->saved);
    if (s->state_q)
        s->optim.state_ops->queue_free(s->state_q);
    pipeline_free(&s->pipe);
    optim_free(&s->optim);
    params_free(&s->params);
    schedule_free(&s->train);
    schedule_free(&s->eval);
    mem_give(s->first_layer);
}

struct schedule_report setup_simulate(const struct setup *s)
{
    double layer, embedding, head, *f = mem_take(sizeof *f * (size_t)s->stages * 3);
    double *in = f + s->stages, *w = in + s->stages;
    struct schedule_report r;

    geometry_stage_costs(&s->d, s->S, &layer, &embedding, &head);
    for (int i = 0; i < s->stages; i++) {
        double blocks = (s->first_layer[i + 1] - s->first_layer[i]) * layer / 3;
        f[i] = blocks + (i == s->stages - 1 ? head : 0) + (i == 0 ? embedding / 3 : 0);
        in[i] = blocks + (i == 0 ? embedding * 2 / 3 : 0);
        w[i] = blocks;
    }
    r = schedule_simulate(&s->train, &(struct schedule_cost){ f, in, w, 0 });
    mem_give(f);
    return r;
}
