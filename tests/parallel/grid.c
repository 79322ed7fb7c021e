/* Every layout of these ranks: who is where, who talks to whom; wrong counts; launchers; threads on
 * cores. */
#include "parallel/grid.h"
#include "parallel/cores.h"
#include "ranks.h"

#include <omp.h>
#include <sched.h>

static struct comm *world;

/* The sum of (world rank + 1)^2 over the ranks of c names them well enough. */
static int64_t members(struct comm *c)
{
    int64_t s = ((int64_t)world->rank + 1) * (world->rank + 1);

    comm_sum_i64(c, &s, 1);
    return s;
}

/* The same from the arithmetic: ranks that differ from me only in the axes named 1. */
static int64_t expected(const struct grid *g, int tp, int cp, int dp, int pp, int *size)
{
    int64_t s = 0;

    *size = 0;
    for (int p = 0; p < g->pp; p++)
        for (int d = 0; d < g->dp; d++)
            for (int c = 0; c < g->cp; c++)
                for (int t = 0; t < g->tp; t++)
                    if ((tp || t == g->tp_rank) && (cp || c == g->cp_rank) &&
                        (dp || d == g->dp_rank) && (pp || p == g->pp_rank)) {
                        int64_t r = grid_rank_of(g, t, c, d, p);
                        s += (r + 1) * (r + 1);
                        ++*size;
                    }
    return s;
}

static int group_holds(const struct grid *g, struct comm *c, int tp, int cp, int dp, int pp,
                       int rank)
{
    int size, ok;
    int64_t want = expected(g, tp, cp, dp, pp, &size);

    ok = c->size == size && c->rank == rank;
    return (members(c) == want) & ok;
}

static int layout_holds(int tp, int cp, int dp, int pp, int copies)
{
    struct err e = { "" };
    struct grid g;
    int r = world->rank, ok = 1;

    if (grid_create(&g, world, tp, cp, dp, pp, copies, &e) != OK)
        return 0;
    ok &= g.ranks == world->size && g.rank == r && g.tp * g.cp * g.dp * g.pp == g.ranks;
    ok &= g.tp_rank == r % tp && g.cp_rank == r / tp % cp && g.dp_rank == r / (tp * cp) % g.dp &&
          g.pp_rank == r / (tp * cp * g.dp);
    ok &= grid_rank_of(&g, g.tp_rank, g.cp_rank, g.dp_rank, g.pp_rank) == r;
    ok &= group_holds(&g, g.tp_comm, 1, 0, 0, 0, g.tp_rank);
    ok &= group_holds(&g, g.cp_comm, 0, 1, 0, 0, g.cp_rank);
    ok &= group_holds(&g, g.dp_comm, 0, 0, 1, 0, g.dp_rank);
    ok &= group_holds(&g, g.pp_comm, 0, 0, 0, 1, g.pp_rank);
    ok &= group_holds(&g, g.grad, 0, 1, 1, 0, g.dp_rank * cp + g.cp_rank);
    ok &= group_holds(&g, g.model, 1, 0, 0, 1, g.pp_rank * tp + g.tp_rank);
    ok &= g.kv->size == copies && g.kv->rank == g.tp_rank % copies;
    ok &= members(g.node) > 0 && g.node->size == g.node_ranks && g.node->rank == g.node_rank;
    ok &= g.nodes >= 1 && g.cores >= 1 && g.mask_ranks >= 1 && g.mask_rank < g.mask_ranks;
    grid_free(&g);
    return ok;
}

static void test_layouts(void)
{
    int n = world->size, ok = 1, tried = 0;

    for (int tp = 1; tp <= n; tp++)
        for (int cp = 1; cp <= n / tp; cp++)
            for (int pp = 1; pp <= n / (tp * cp); pp++)
                if (n % (tp * cp * pp) == 0) {
                    ok &= layout_holds(tp, cp, tried % 2 ? 0 : n / (tp * cp * pp), pp,
                                       tp % 2 ? 1 : 2);
                    tried++;
                }
    ranks_ok(ok && tried > 0, "%d layouts", tried);
}

static const struct {
    int ranks, tp, cp, pp, dp, dp_out;
    enum status st;
    const char *text;
} counts[] = {
    { 8, 2, 1, 2, 2, 2, OK, "" },
    { 8, 2, 1, 2, 0, 2, OK, "" },
    { 1, 1, 1, 1, 0, 1, OK, "" },
    { 6, 2, 1, 2, 2, 2, E_INPUT,
      "dp 2 x tp 2 x cp 1 x pp 2 = 8 ranks, but there are 6: "
      "use -np 8, or dp = 0 with a multiple of 4 ranks" },
    { 6, 2, 1, 2, 0, 0, E_INPUT, "use -np 4 (dp 1) or -np 8 (dp 2)" },
    { 3, 2, 1, 2, 0, 0, E_INPUT, "mpirun started 3: use -np 4" },
    { 8, 0, 1, 2, 2, 2, E_INPUT, "tp, cp and pp must be at least 1" },
    { 8, 1, 1, 1, -1, -1, E_INPUT, "dp at least 0" },
    { 8, 65536, 65536, 65536, 2, 2, E_INPUT, "4294967296" },
};

static void test_counts(void)
{
    for (int i = 0; i < COUNT_OF(counts); i++) {
        struct err e = { "" };
        int dp = counts[i].dp;
        enum status st =
            grid_sizes(counts[i].ranks, counts[i].tp, counts[i].cp, counts[i].pp, &dp, &e);
        ranks_ok(st == counts[i].st && dp == counts[i].dp_out && strstr(e.text, counts[i].text) &&
                     (st != OK || !e.text[0]),
                 "%d ranks, dp %d: %s", counts[i].ranks, counts[i].dp, st == OK ? "fits" : e.text);
    }
}

static const struct {
    const char *variable, *value;
    int ranks;
    enum status st;
} launches[] = {
    { "SLURM_NTASKS", "4", 1, E_INPUT },
    { "SLURM_NTASKS", "4", 4, OK },
    { "SLURM_NTASKS", "1", 1, OK },
    { "PMI_SIZE", "2", 1, E_INPUT },
    { "OMPI_COMM_WORLD_SIZE", "2", 1, E_INPUT },
    { "FLUX_JOB_SIZE", "3", 1, E_INPUT },
    { "JSM_NAMESPACE_SIZE", "6", 1, E_INPUT },
    { "PMI_SIZE", "words", 1, OK },
};

static void test_launchers(void)
{
    static const char *const all[] = {
        "PMI_SIZE",           "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE",
        "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE",        "SLURM_NTASKS"
    };

    for (int i = 0; i < COUNT_OF(launches); i++) {
        struct err e = { "" };
        enum status st;
        for (int k = 0; k < COUNT_OF(all); k++)
            unsetenv(all[k]);
        setenv(launches[i].variable, launches[i].value, 1);
        st = grid_check_launcher(launches[i].ranks, &e);
        ranks_ok(st == launches[i].st && (st == OK || strstr(e.text, launches[i].variable)),
                 "%s=%s with %d ranks", launches[i].variable, launches[i].value, launches[i].ranks);
    }
    setenv("PMI_SIZE", "1", 1); /* mpirun -np 1 inside a larger job */
    setenv("SLURM_NTASKS", "4", 1);
    ranks_ok(grid_check_launcher(1, NULL) == OK,
             "mpirun starts one rank inside a job of four tasks");
}

/* Where each thread may run; the threads of all ranks of the node on different cores when there are
 * enough. */
static void test_threads(void)
{
    struct err e = { "" };
    struct cores before, now, used = { { 0 } };
    struct grid g;
    int64_t cores[64] = { 0 };
    int threads, spread, inside = 1, many, pinned;

    cores_own(&before);
    if (grid_create(&g, world, 1, 1, 0, 1, 1, &e) != OK)
        die(E_BUG, "%s", e.text);
    threads = grid_pin_threads(&g, 0);
    pinned = g.node_ranks <= g.cores;
#pragma omp parallel private(now)
    {
        cores_own(&now);
#pragma omp critical
        {
            inside &= !pinned || cores_count(&now) == 1;
            for (int i = 0; i < CORES_MAX; i++) {
                int in = now.word[i / 64] >> i % 64 & 1;
                inside &= !in || (before.word[i / 64] >> i % 64 & 1);
                if (in && i < COUNT_OF(cores))
                    cores[i]++;
            }
            cores_add(&used, &now);
        }
    }
    ranks_ok(threads == max_i64(1, g.cores / g.node_ranks) && omp_get_max_threads() == threads,
             "%d threads on each of %d ranks, %d cores", threads, g.node_ranks, g.cores);
    ranks_ok(inside, "threads stay within the cores that the launcher gave, one each");
    comm_sum_i64(g.node, cores, COUNT_OF(cores));
    spread = 1;
    for (int i = 0; i < COUNT_OF(cores); i++)
        spread &= cores[i] <= 1;
    ranks_ok(!pinned || spread, "no two threads of the node share a core");
    ranks_ok(pinned || memcmp(&used, &before, sizeof used) == 0,
             "more ranks than cores are not pinned");
    many = grid_pin_threads(&g, 3);
    ranks_ok(many == 3 && omp_get_max_threads() == 3, "as many threads as asked");
    grid_free(&g);
}

int main(int argc, char **argv)
{
    struct err e = { "" };
    struct grid g;

    world = comm_mpi_start(&argc, &argv);
    ranks_plan(world, 3 + COUNT_OF(counts) + COUNT_OF(launches) + 6);
    test_layouts();
    ranks_ok(grid_create(&g, world, world->size + 1, 1, 0, 1, 1, &e) == E_INPUT && e.text[0],
             "too few ranks are refused on all: %s", e.text);
    e.text[0] = 0;
    ranks_ok(grid_create(&g, world, 1, 1, 0, 1, 2, &e) == E_INPUT && strstr(e.text, "copies"),
             "two copies need tp 2");
    test_counts();
    test_launchers();
    test_threads();
    comm_mpi_end(world);
    return tap_done();
}
