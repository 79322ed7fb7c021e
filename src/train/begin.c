#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "convert/import.h"
#include "parallel/agree.h"
#include "parallel/comm_mpi.h"
#include "train/plan.h"
#include "train/run.h"

/* ---- which checkpoint, rank 0 ---- */

static int has_steps(const char *dir)
{
    char **names;
    int n, found = 0;

    if (file_list(dir, &names, &n, NULL) != OK)
        return 0;
    for (int i = 0; i < n; i++)
        found |= strncmp(names[i], "step_", 5) == 0;
    mem_give(names);
    return found;
}

static int inside(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    while (n > 1 && dir[n - 1] == '/')
        n--;
    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* interface: 'auto', 'never', or a path that counts while the directory has no good checkpoint of
 * its own. */
static enum status find_resume(struct run *r, struct err *e)
{
    const char *how = r->c->run.resume, *dir = r->c->run.directory;
    enum status st = OK;

    r->resume_from[0] = 0;
    if (strcmp(how, "never") == 0)
        return !has_steps(dir) ? OK
                               : err_set(e, E_INPUT,
                                         "run.resume = 'never', but '%s' holds checkpoints: use "
                                         "'auto' to go on, or another "
                                         "directory",
                                         dir);
    if (file_is_dir(dir))
        st = checkpoint_newest(dir, r->resume_from, strcmp(how, "auto") == 0 ? e : NULL);
    if (strcmp(how, "auto") == 0 || (st == OK && r->resume_from[0]))
        return st;
    if (!file_is_dir(how))
        return err_set(e, E_FILE,
                       "run.resume = '%s': no such checkpoint; 'auto', 'never', or the path of a "
                       "step_* folder",
                       how);
    snprintf(r->resume_from, sizeof r->resume_from, "%s", how);
    r->resumed_elsewhere = !inside(how, dir);
    return OK;
}

/* The deck against what the checkpoint was written with. */
static enum status compare_resume(struct run *r, const struct checkpoint *ck, struct err *e)
{
    char *notes = NULL;
    enum status st = config_compare(r->c, ck->input_nml, &notes, e);

    if (st != OK)
        err_prefix(e, "cannot resume from '%s'", r->resume_from);
    else if (notes && notes[0])
        warn("resumed with other settings than '%s' was written with:\n%s", r->resume_from, notes);
    mem_give(notes);
    return st;
}

/* vocab_size = 0: the checkpoint's, without a look at the data. */
static void take_vocabulary(struct config *c, const struct checkpoint *ck)
{
    int64_t shape[3];
    enum dtype t;

    if (c->model.vocab_size == 0 &&
        checkpoint_shape(ck, CHECKPOINT_WEIGHTS, param_rows[P_EMBED].hf_name, shape, &t))
        c->model.vocab_size = shape[0];
}

static enum status resolve_resumed(struct run *r, struct err *e)
{
    struct checkpoint ck;
    enum status st = checkpoint_open(&ck, r->resume_from, e);

    if (st != OK)
        return st;
    st = resolve_model(r->c, ck.input_nml, e);
    if (st == OK) {
        take_vocabulary(r->c, &ck);
        st = compare_resume(r, &ck, e);
    }
    if (st == OK)
        st = config_check_rules(r->c, e);
    if (st == OK)
        st = resolve_data(r->c, NULL, e);
    if (st == OK && r->c->debug.attention == ATTENTION_AUTO)
        r->attention_before = config_stored_choice(KEY_debug_attention, ck.input_nml);
    checkpoint_close(&ck);
    return st;
}

static enum status read_input(struct run *r, const struct run_request *q, int ranks, struct err *e)
{
    enum status st = grid_check_launcher(ranks, e);

    if (st == OK)
        st = config_read(r->c, q->deck, q->sets, q->nsets, e);
    if (st == OK)
        st = resolve_ranks(r->c, ranks, e);
    if (st == OK)
        st = find_resume(r, e);
    if (st != OK)
        return st;
    if (r->resume_from[0])
        return resolve_resumed(r, e);
    st = resolve_model(r->c, NULL, e);
    return st == OK ? resolve_data(r->c, NULL, e) : st;
}

/* ---- all ranks ---- */

static enum status open_data(struct run *r, struct comm *world, struct err *e)
{
    int parts = SOURCES_TRAIN | (r->c->eval.interval > 0 ? SOURCES_VALIDATION : 0);
    enum status st = sources_open(&r->data, r->c, parts, e);

    return agree(world, st, e);
}

/* Sum over a node of what its ranks need, against the limit of the node and what its GPUs have. */
static enum status check_memory(struct run *r, struct err *e)
{
    double limit = r->c->run.memory_limit * 1073741824.0;
    int64_t need;
    enum status st;

    setup_measure(&r->s);
    need = (int64_t)setup_bytes(&r->s);
    st = device_check_memory(r, need, e);
    if (r->ops->memory)
        need = (int64_t)setup_host_bytes(&r->s);
    comm_sum_i64(r->g.node, &need, 1);
    if (limit <= 0)
        limit = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (st == OK && (double)need > limit)
        st = err_set(
            e, E_RESOURCE,
            "this node's %d ranks need %.2f GiB, the limit is %.4g GiB: use more nodes, a larger "
            "tp or pp, or a smaller micro_batch_size; pretrain --plan shows where it goes",
            r->g.node_ranks, (double)need / 1073741824.0, limit / 1073741824.0);
    return agree(r->g.world, st, e);
}

static enum status random_values(void *context, const struct param *p, const struct box *what,
                                 double *out, struct err *e)
{
    const struct run *r = context;

    (void)e;
    param_init_values(&r->s.d, p, (uint64_t)r->c->run.seed, what, out);
    return OK;
}

static enum status load_checkpoint(struct run *r, struct err *e)
{
    struct checkpoint ck;
    enum status st = checkpoint_open(&ck, r->resume_from, e);

    if (st == OK && (st = sources_compare(&r->data, r->c, ck.input_nml, ck.data_hash,
                                          ck.scalars.step, e)) != OK)
        err_prefix(e, "cannot resume from '%s'", r->resume_from);
    if (st == OK)
        st = checkpoint_load(&ck, r->s.optim.state_ops, r->s.optim.state_q, r->s.optim.pieces,
                             r->s.optim.npieces, e);
    if (st == OK) {
        r->step = ck.scalars.step;
        r->saved = r->resumed_elsewhere ? -1 : r->step;
        r->s.optim.t = ck.scalars.adam_t;
        if (r->rule.init > 0 && ck.scalars.loss.scale > 0)
            r->scale = ck.scalars.loss;
        checkpoint_close(&ck);
    }
    st = agree(r->g.world, st, e);
    if (st == OK)
        optim_gather_weights(&r->s.optim);
    return st;
}

/* Other types than float16 have the range of float32. */
static void start_loss_scale(struct run *r)
{
    const struct config *c = r->c;

    r->rule = (struct loss_scale_rule){ .growth_interval = c->train.loss_scale_growth_interval,
                                        .backoff = c->train.loss_scale_backoff,
                                        .hysteresis = c->train.loss_scale_hysteresis };
    r->scale = (struct loss_scale){ .scale = 1 };
    if (c->train.dtype != CONFIG_FLOAT16)
        return;
    r->rule.init = c->train.loss_scale_init;
    loss_scale_start(&r->scale, &r->rule);
}

static enum status set_values(struct run *r, struct err *e)
{
    const struct config *c = r->c;
    enum status st;

    start_loss_scale(r);
    if (r->resume_from[0])
        return load_checkpoint(r, e);
    st = c->model.init_from[0] ? import_weights(c->model.init_from, &r->s.optim, e)
                               : optim_set_masters(&r->s.optim, random_values, r, e);
    if ((st = agree(r->g.world, st, e)) == OK)
        optim_gather_weights(&r->s.optim);
    return st;
}

static enum status choose_backend(struct run *r, int *threads, struct err *e)
{
    enum status st;

    *threads = grid_pin_threads(&r->g, (int)r->c->run.threads);
    device_resolve(r);
    st = setup_choose_ops(r->c, &r->ops, e);
    if (st == OK)
        st = device_open(r, *threads, e);
    return agree(r->g.world, st, e);
}

/* The first and last stage of a tied model at one (dp, tp), when they are different ranks. */
static void connect_tied(struct run *r)
{
    int mine = 0, color;

    for (int b = 0; b < r->s.params.nbuckets; b++)
        mine |= r->s.params.b[b].tied != 0;
    mine = mine && r->s.optim.alias_of < 0;
    color = mine ? (r->g.dp_rank * r->g.cp + r->g.cp_rank) * r->g.tp + r->g.tp_rank : -1;
    if (r->s.d.tied && r->g.pp > 1)
        r->s.optim.tied_peer = comm_mpi_split(r->g.world, color, r->g.pp_rank, "tied");
}

static void place_rows(struct run *r)
{
    size_t bytes = sizeof(int32_t) * (size_t)(r->s.B * r->s.positions);

    r->rows = (struct batch_rows){ mem_take(bytes), mem_take(bytes), mem_take(bytes),
                                   mem_take(bytes), mem_take(bytes) };
}

static void fill_rope(struct run *r)
{
    const struct config *c = r->c;

    env_fill_rope(&r->s.env,
                  &(struct rope_scaling){ c->model.rope_scaling_type, c->model.rope_scaling_factor,
                                          c->model.rope_low_freq_factor,
                                          c->model.rope_high_freq_factor,
                                          c->model.rope_original_max_position_embeddings },
                  r->s.positions);
}

enum status run_open(struct run *r, struct comm *world, const struct forward_use *use,
                     struct err *e)
{
    const struct config *c = r->c;
    int threads;
    enum status st =
        grid_create(&r->g, world, (int)c->parallel.tp, (int)c->parallel.cp, (int)c->parallel.dp,
                    (int)c->parallel.pp, dims_of(c, (int)c->parallel.tp).kv_copies, e);

    if ((st = agree(world, st, e)) != OK)
        return st;
    if ((st = choose_backend(r, &threads, e)) != OK)
        return st;
    st = setup_build(&r->s, c, &r->g, r->ops, threads, use, e);
    if ((st = agree(world, st, e)) != OK || (st = device_choose_attention(r, e)) != OK ||
        (st = check_memory(r, e)) != OK)
        return st;
    if (!use)
        connect_tied(r);
    st = device_connect(r, e);
    if ((st = agree(world, st, e)) != OK)
        return st;
    if (r->ops->device && (st = check_memory(r, e)) != OK) /* what NCCL took is missing now */
        return st;
    place_rows(r);
    r->resident = mem_resident();
    st = setup_open(&r->s, r->q, e);
    if ((st = agree(world, st, e)) == OK)
        fill_rope(r);
    return st;
}

enum status run_begin(struct run *r, struct comm *world, const struct run_request *q, struct err *e)
{
    struct config *c = r->c;
    enum status st = OK;

    if (world->rank == 0)
        st = read_input(r, q, world->size, e);
    if ((st = agree(world, st, e)) != OK)
        return st;
    comm_bytes_from(world, c, sizeof *c, 0);
    comm_bytes_from(world, r->resume_from, sizeof r->resume_from, 0);
    comm_bytes_from(world, &r->resumed_elsewhere, sizeof r->resumed_elsewhere, 0);
    comm_bytes_from(world, &r->attention_before, sizeof r->attention_before, 0);
    if ((st = open_data(r, world, e)) != OK || (st = run_open(r, world, NULL, e)) != OK ||
        (st = set_values(r, e)) != OK)
        return st;
    device_measure_peak(r);
    r->input_nml = config_write(c);
    r->identity = sources_identity(&r->data);
    return OK;
}

void run_end(struct run *r)
{
    int32_t *const rows[] = { r->rows.ids, r->rows.labels, r->rows.place, r->rows.start,
                              r->rows.position };

    for (int i = 0; i < COUNT_OF(rows); i++)
        mem_give(rows[i]);
    comm_device_close(&r->links);
    if (r->s.optim.tied_peer)
        comm_mpi_free(r->s.optim.tied_peer);
    setup_free(&r->s);
    sources_close(&r->data);
    mem_give(r->identity);
    if (r->q)
        r->ops->queue_free(r->q);
    mem_give(r->input_nml);
}
