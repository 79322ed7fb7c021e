#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "compute/choose.h"
#include "input/config.h"
#include "parallel/comm_mpi.h"
#include "store/h5.h"
#include "text/tokenizer.h"
#include "train/plan.h"

static const struct option_row rows[] = {
    { "set", 0, "GROUP.KEY=VALUE", OPTION_REPEATED, NULL,
      "change a key of the deck, written as in the deck" },
    { "check", 0, NULL, OPTION_OPTIONAL, NULL,
      "read and validate the deck, print one screen, run nothing (no mpirun)" },
    { "plan", 0, NULL, OPTION_OPTIONAL, NULL,
      "the whole table: layers, memory, schedule, messages of every stage (no mpirun)" },
    { "ranks", 0, "N", OPTION_OPTIONAL, NULL, "with --check, --plan: for N ranks" },
    { "ranks-per-node", 0, "R", OPTION_OPTIONAL, NULL,
      "with --check, --plan: R of them on a node (default N)" },
    { "print-defaults", 0, NULL, OPTION_OPTIONAL, NULL,
      "a commented deck of all keys with their defaults" },
    { "print-markdown", 0, NULL, OPTION_OPTIONAL, NULL, "the text of doc/INPUT.md" },
    { "verify", 0, NULL, OPTION_OPTIONAL, NULL, "not in this build" },
    { "why", 0, "RUN", OPTION_OPTIONAL, NULL, "not in this build" },
    { "version", 0, NULL, OPTION_OPTIONAL, NULL, "version, libraries and features" },
};

static const struct command command = {
    .name = "",
    .operands = "DECK.nml",
    .min_operands = 0,
    .max_operands = 1,
    .about =
        "mpirun -np N pretrain DECK.nml trains, or goes on with, the run that the deck describes.\n"
        "pretrain --help KEY explains a key, e.g. --help learning_rate; --help keys lists all.",
    .rows = rows,
    .nrows = COUNT_OF(rows),
};

static void print_version(void)
{
    const struct ops *ops;

    ops_choose(&ops, "auto", "auto", F32, NULL);
    printf("pretrain %s\n%s\n%s\n%s\nproducts: %s\nGPUs: " GPU_PART
           "\nfeatures: float32, bfloat16, float16; float64 (reference); dp, tp, pp; gpipe, 1f1b, "
           "zb-h1, interleaved; zero 0, 1\n",
           PACKAGE_VERSION, comm_mpi_version(), h5_version(), tokenizer_libraries(),
           ops_describe());
}

/* --help KEY: the word after --help, NULL without one. */
static int help_asked(int argc, char **argv, const char **key)
{
    *key = NULL;
    for (int i = 1; i < argc; i++) {
        int at = strncmp(argv[i], "--help=", 7) == 0;
        if (!at && strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
            continue;
        if (at)
            *key = argv[i] + 7;
        else if (i + 1 < argc && argv[i + 1][0] != '-')
            *key = argv[i + 1];
        return 1;
    }
    return 0;
}

static enum status help(const char *key, struct err *e)
{
    if (!key) {
        options_print_help("pretrain", &command);
        return OK;
    }
    return config_help(strcmp(key, "keys") == 0 ? NULL : key, e);
}

static int collect_sets(const struct options *o, char **sets, int most)
{
    int n = options_given(o, "set");

    for (int i = 0; i < n && i < most; i++)
        sets[i] = (char *)options_item(o, "set", i);
    return n;
}

/* Everything that needs no other rank. *train: nothing was asked for but to train. */
static enum status local_work(const struct options *o, struct plan_request *q, int *train,
                              struct err *e)
{
    int64_t ranks = 0, per_node = 0;
    enum status st = options_i64(o, "ranks", 1, 1 << 24, &ranks, e);

    if (st == OK)
        st = options_i64(o, "ranks-per-node", 1, 1 << 24, &per_node, e);
    if (st != OK)
        return st;
    q->ranks = (int)ranks;
    q->ranks_per_node = (int)per_node;
    if (options_given(o, "version"))
        print_version();
    else if (options_given(o, "print-defaults"))
        config_print_defaults();
    else if (options_given(o, "print-markdown"))
        config_print_markdown();
    else if (options_given(o, "verify") || options_given(o, "why"))
        return err_set(e, E_INPUT, "--verify and --why are not in this build");
    else if (options_noperands(o) == 0)
        return err_set(e, E_INPUT,
                       "which deck? usage: mpirun -np N pretrain DECK.nml; see pretrain --help");
    else if (options_given(o, "plan"))
        return ranks ? plan_table(q, e) : err_set(e, E_INPUT, "--plan needs --ranks N");
    else if (options_given(o, "check"))
        return plan_check(q, e);
    else if (ranks || per_node)
        return err_set(
            e, E_INPUT,
            "--ranks and --ranks-per-node go with --check or --plan; a run takes mpirun's -np");
    else
        *train = 1;
    return OK;
}

static enum status train(int *argc, char ***argv, const struct plan_request *q)
{
    struct comm *world = comm_mpi_start(argc, argv);
    struct run_request r = { q->deck, q->sets, q->nsets };
    enum status st = train_main(world, &r);

    comm_mpi_end(world);
    return st;
}

int main(int argc, char **argv)
{
    enum { SETS_MAX = 256 };
    static char *sets[SETS_MAX];
    static struct err e;
    const char *key;
    struct options *o = NULL;
    struct plan_request q = { .sets = sets };
    int go = 0;
    enum status st;

    if (help_asked(argc, argv, &key)) {
        st = help(key, &e);
    } else if ((st = options_parse(&o, "pretrain", &command, argc, argv, &e)) == OK && o) {
        if (options_noperands(o))
            q.deck = options_operands(o)[0];
        if ((q.nsets = collect_sets(o, sets, SETS_MAX)) > SETS_MAX)
            st = err_set(&e, E_INPUT, "more than %d --set", SETS_MAX);
        else
            st = local_work(o, &q, &go, &e);
    }
    if (st != OK)
        complain("%s", e.text);
    else if (go)
        st = train(&argc, &argv, &q);
    options_close(o);
    return st;
}
