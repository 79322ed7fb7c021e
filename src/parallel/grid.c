#include "parallel/grid.h"

#include "base/arena.h"
#include "parallel/comm_mpi.h"
#include "parallel/cores.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- arithmetic ---- */

enum status grid_sizes(int ranks, int tp, int cp, int pp, int *dp, struct err *e)
{
    int64_t copy, low, all;

    if (tp < 1 || cp < 1 || pp < 1 || *dp < 0)
        return err_set(
            e, E_INPUT,
            "dp %d x tp %d x cp %d x pp %d: tp, cp and pp must be at least 1, dp at least 0", *dp,
            tp, cp, pp);
    copy = (int64_t)tp * cp;
    copy = copy > INT32_MAX ? copy : copy * pp;
    if (*dp == 0 && copy <= ranks && ranks % copy == 0)
        *dp = (int)(ranks / copy);
    all = copy > INT32_MAX ? copy : copy * *dp;
    if (all == ranks)
        return OK;
    if (*dp > 0)
        return err_set(e, E_INPUT,
                       "dp %d x tp %d x cp %d x pp %d = %" PRId64 " ranks, but there are %d: "
                       "use -np %" PRId64 ", or dp = 0 with a multiple of %" PRId64 " ranks",
                       *dp, tp, cp, pp, all, ranks, all, copy);
    low = ranks / copy * copy;
    if (low == 0)
        return err_set(e, E_INPUT,
                       "tp %d x cp %d x pp %d = %" PRId64
                       " ranks for one copy of the model, but mpirun "
                       "started %d: use -np %" PRId64,
                       tp, cp, pp, copy, ranks, copy);
    return err_set(e, E_INPUT,
                   "tp %d x cp %d x pp %d = %" PRId64
                   " ranks for one copy of the model, which do not "
                   "divide the %d ranks that there are: use -np %" PRId64 " (dp %" PRId64
                   ") or -np %" PRId64 " (dp %" PRId64 ")",
                   tp, cp, pp, copy, ranks, low, low / copy, low + copy, low / copy + 1);
}

int grid_rank_of(const struct grid *g, int tp_rank, int cp_rank, int dp_rank, int pp_rank)
{
    return ((pp_rank * g->dp + dp_rank) * g->cp + cp_rank) * g->tp + tp_rank;
}

/* ---- communicators ---- */

/* Ranks that agree in all coordinates but those set to 0 here. */
static struct comm *split(struct grid *g, int tp_rank, int cp_rank, int dp_rank, int pp_rank,
                          const char *name)
{
    return comm_mpi_split(g->world, grid_rank_of(g, tp_rank, cp_rank, dp_rank, pp_rank), g->rank,
                          name);
}

static void create_groups(struct grid *g, int kv_copies)
{
    int t = g->tp_rank, c = g->cp_rank, d = g->dp_rank, p = g->pp_rank;

    g->tp_comm = split(g, 0, c, d, p, "tp");
    g->cp_comm = split(g, t, 0, d, p, "cp");
    g->dp_comm = split(g, t, c, 0, p, "dp");
    g->pp_comm = split(g, t, c, d, 0, "pp");
    g->grad = split(g, t, 0, 0, p, "grad");
    g->model = split(g, 0, c, d, 0, "model");
    g->kv = split(g, t / kv_copies * kv_copies, c, d, p, "kv");
    g->node = comm_mpi_split_node(g->world, "node");
}

static void count_cores(struct grid *g)
{
    struct comm *n = g->node;
    struct cores mine, all_of_node = { { 0 } };
    struct cores *all = mem_take((size_t)n->size * sizeof *all);
    int64_t firsts = n->rank == 0;

    cores_own(&mine);
    comm_bytes_all(n, &mine, all, sizeof mine);
    for (int i = 0; i < n->size; i++) {
        int same = memcmp(&all[i], &mine, sizeof mine) == 0;
        cores_add(&all_of_node, &all[i]);
        g->mask_ranks += same;
        g->mask_rank += same && i < n->rank;
    }
    mem_give(all);
    comm_sum_i64(g->world, &firsts, 1);
    g->nodes = (int)firsts;
    g->node_ranks = n->size;
    g->node_rank = n->rank;
    g->cores = (int)max_i64(1, cores_count(&all_of_node));
    comm_mpi_crowd(g->world, g->node_ranks > g->cores);
}

enum status grid_create(struct grid *g, struct comm *world, int tp, int cp, int dp, int pp,
                        int kv_copies, struct err *e)
{
    enum status st = grid_sizes(world->size, tp, cp, pp, &dp, e);
    int rest = world->rank;

    if (st != OK)
        return st;
    if (kv_copies < 1 || tp % kv_copies != 0)
        return err_set(e, E_INPUT,
                       "tp %d is not a multiple of the %d copies of each key/value head", tp,
                       kv_copies);
    *g = (struct grid){ .ranks = world->size,
                        .rank = world->rank,
                        .tp = tp,
                        .cp = cp,
                        .dp = dp,
                        .pp = pp,
                        .world = world };
    g->tp_rank = rest % tp;
    rest /= tp;
    g->cp_rank = rest % cp;
    rest /= cp;
    g->dp_rank = rest % dp;
    g->pp_rank = rest / dp;
    create_groups(g, kv_copies);
    count_cores(g);
    return OK;
}

void grid_free(struct grid *g)
{
    struct comm *all[] = { g->node,    g->kv,      g->model,   g->grad,
                           g->pp_comm, g->dp_comm, g->cp_comm, g->tp_comm };

    for (int i = 0; i < COUNT_OF(all); i++)
        comm_mpi_free(all[i]);
    *g = (struct grid){ .world = g->world, .ranks = g->ranks, .rank = g->rank };
}

/* ---- launcher ---- */

/* What launchers tell each process about the number of ranks. Slurm speaks last: its variable is
 * also that of the whole job, where an mpirun inside may rightly start one rank. */
static const struct {
    const char *variable, *launcher, *cure;
} launchers[] = {
    { "PMI_SIZE", "an MPICH or PALS mpiexec",
      "start with the mpirun of the MPI library that built pretrain" },
    { "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun",
      "start with the mpirun of the MPI library that built pretrain" },
    { "MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun",
      "start with the mpirun of the MPI library that built pretrain" },
    { "JSM_NAMESPACE_SIZE", "jsrun", "build pretrain with the MPI library that jsrun starts" },
    { "FLUX_JOB_SIZE", "flux run", "choose another -o pmi or mpi option of flux run" },
    { "SLURM_NTASKS", "Slurm",
      "use srun --mpi=pmi2 (srun --mpi=list shows what there is), or mpirun; srun -n 1 for one "
      "rank on purpose" },
};

enum status grid_check_launcher(int world_size, struct err *e)
{
    for (int i = 0; i < COUNT_OF(launchers); i++) {
        const char *text = getenv(launchers[i].variable);
        long n = text ? strtol(text, NULL, 10) : 0;
        if (n < 1)
            continue;
        if (world_size > 1 || n == 1)
            return OK;
        return err_set(
            e, E_INPUT,
            "%s says %s=%ld, but MPI (%s) started this process alone: every rank would train "
            "by itself. %s",
            launchers[i].launcher, launchers[i].variable, n, comm_mpi_version(), launchers[i].cure);
    }
    return OK;
}

/* ---- threads ---- */

int grid_pin_threads(const struct grid *g, int asked)
{
    struct cores mine;
    int threads = asked > 0 ? asked : (int)max_i64(1, g->cores / g->node_ranks);
    int cores, first, width;

    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    cores_own(&mine);
    cores = cores_count(&mine);
    if (g->node_ranks > g->cores ||
        g->mask_ranks > cores) /* the system shares the cores out better than we can */
        return threads;
    first = (int)((int64_t)g->mask_rank * cores / g->mask_ranks);
    width = (int)((int64_t)(g->mask_rank + 1) * cores / g->mask_ranks) - first;
#pragma omp parallel num_threads(threads)
    {
        int t = omp_get_thread_num();
        int at = threads <= width ? t : (int)((int64_t)t * width / threads);
        cores_pin(cores_nth(&mine, first + at));
    }
    return threads;
}
