#include "convert/tokenize.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "convert/commit.h"
#include "convert/peers.h"
#include "convert/progress.h"
#include "parallel/agree.h"
#include "parallel/comm_mpi.h"
#include "parallel/cores.h"

struct job {
    const struct tokenize *a;
    struct comm *world; /* NULL: alone */
    int rank, ranks;
    struct document_ids ids;
    char *json;
    int threads, window; /* window: batches with each rank */
    struct pool *pool;
    /* rank 0 */
    struct input_list list;
    struct commit *commit;
    struct batches *batches;
    struct peers *peers;
    struct work *work; /* [window * ranks]; batch k is at k % that, and with rank k % ranks */
    int64_t put, taken;
    int ended; /* no more is read */
    struct progress progress;
};

static void all_bytes(struct job *j, void *p, size_t n)
{
    if (j->world)
        comm_bytes_from(j->world, p, n, 0);
}

/* With a world rank 0 says the error. */
static enum status all_fine(struct job *j, enum status st, struct err *e)
{
    return j->world ? agree(j->world, st, e) : st;
}

/* ---- begin, on all ranks ---- */

static enum status open_tokenizer(struct job *j, struct err *e)
{
    const struct tokenize *a = j->a;
    int64_t bytes = 0;
    size_t n = 0;
    enum status st = OK;

    if (j->rank == 0)
        st = document_ids_read(a->tokenizer, &j->json, &n, e);
    if ((st = all_fine(j, st, e)) != OK)
        return st;
    bytes = (int64_t)n;
    all_bytes(j, &bytes, sizeof bytes);
    if (j->rank != 0)
        j->json = mem_take((size_t)bytes + 1);
    all_bytes(j, j->json, (size_t)bytes);
    st = document_ids_open(&j->ids, a->tokenizer, j->json, (size_t)bytes, a->eod, e);
    return all_fine(j, st, e);
}

/* The cores of the node, shared by the ranks on it. */
static int cores_each(struct job *j)
{
    struct cores mine, all_of_node = { { 0 } }, *all;
    struct comm *node;
    int n;

    cores_own(&mine);
    if (!j->world)
        return (int)max_i64(1, cores_count(&mine));
    node = comm_mpi_split_node(j->world, "node");
    all = mem_take((size_t)node->size * sizeof *all);
    comm_bytes_all(node, &mine, all, sizeof mine);
    for (int i = 0; i < node->size; i++)
        cores_add(&all_of_node, &all[i]);
    n = (int)max_i64(1, cores_count(&all_of_node) / node->size);
    mem_give(all);
    comm_mpi_free(node);
    return n;
}

static void open_pool(struct job *j)
{
    const struct encode_how how = {
        .x = &j->ids,
        .field = j->a->field,
        .specials_as_text = j->a->specials_as_text,
        .replace = j->a->replace,
        .hash = j->a->drop_duplicates,
    };
    int64_t most;

    j->threads = cores_each(j);
    if (j->a->threads)
        j->threads = (int)j->a->threads;
    most = j->threads;
    if (j->world)
        comm_max_i64(j->world, &most, 1);
    j->window = 2 * (int)most + 2;
    j->pool = pool_open(&how, j->threads, j->window);
}

/* ---- begin, on rank 0 ---- */

static enum status check_outputs(const struct job *j, struct err *e)
{
    const struct tokenize *a = j->a;
    enum status st = OK;

    for (int64_t i = 0; i < j->list.n && st == OK; i++) {
        st = output_check(a->out, j->list.at[i].path, e);
        if (st == OK && a->validation)
            st = output_check(a->validation, j->list.at[i].path, e);
        if (a->drop_duplicates && j->list.at[i].format == INPUT_TEXT &&
            strcmp(j->list.at[i].path, "-") == 0)
            st = err_set(
                e, E_INPUT,
                "-: a text from standard input can be read only once, and --drop-duplicates "
                "must read a long one twice; write it to a file");
    }
    if (st == OK && a->validation && output_check(a->out, a->validation, NULL) != OK)
        st =
            err_set(e, E_INPUT, "%s: both -o and --validation-output; give them two names", a->out);
    return st;
}

/* What the tokens depend on besides inputs and tokenizer, as a person reads it. */
static void describe(const struct tokenize *a, char *text, size_t room)
{
    snprintf(text, room,
             "--field %s --eod %s%s%s --validation-fraction %.12f --validation-output %s", a->field,
             a->eod ? a->eod : "(the tokenizer's)",
             a->specials_as_text ? " --specials-as-text" : "",
             a->drop_duplicates ? " --drop-duplicates" : "", a->fraction,
             a->validation ? a->validation : "(none)");
}

static enum status open_files(struct job *j, struct err *e)
{
    const struct tokenize *a = j->a;
    char options[2048];
    struct commit_how how = {
        .x = &j->ids,
        .list = &j->list,
        .out = a->out,
        .validation = a->validation,
        .fraction = a->fraction,
        .drop_duplicates = a->drop_duplicates,
        .journal_seconds = a->journal_seconds,
        .options = options,
        .replace = a->replace,
    };
    const struct batches_of of = { &j->list, j->ids.t, a->drop_duplicates, a->replace };
    struct place from = { 0 };
    enum status st = input_list_make(&j->list, a->input, a->ninputs, a->format, e);

    if (st == OK)
        st = check_outputs(j, e);
    if (st != OK)
        return st;
    input_list_say(&j->list);
    describe(a, options, sizeof options);
    st = commit_open(&j->commit, &how, &from, e);
    j->batches = batches_open(&of, &from);
    return st;
}

/* ---- batches ---- */

static struct work *work_at(const struct job *j, int64_t k)
{
    return &j->work[k % ((int64_t)j->window * j->ranks)];
}

static int is_mine(const struct job *j, int64_t k)
{
    return k % j->ranks == 0;
}

/* As many as there is room for. What cannot be read is an error in its turn. */
static void hand_out(struct job *j)
{
    while (!j->ended && j->put - j->taken < (int64_t)j->window * j->ranks) {
        struct work *w = work_at(j, j->put);
        int more;
        enum status st = batches_next(j->batches, &w->batch, &more, &w->r.e);

        j->ended = !more;
        if (st != OK) {
            w->r.h = (struct encoded_head){ .status = st };
            w->done = 1;
            w->batch.input = -1;
            j->put++;
            return;
        }
        if (!more)
            return;
        if (is_mine(j, j->put))
            pool_put(j->pool, w);
        else
            peers_put(j->peers, (int)(j->put % j->ranks), w);
        j->put++;
    }
}

static int is_done(struct job *j, int64_t k)
{
    struct work *w = work_at(j, k);

    return w->batch.input < 0 || !is_mine(j, k) ? w->done : pool_is_done(j->pool, w);
}

static enum status commit_one(struct job *j, const struct work *w, struct err *e)
{
    if (w->batch.input < 0)
        return err_set(e, (enum status)w->r.h.status, "%s", w->r.e.text);
    progress_show(&j->progress, w->batch.done);
    return commit_add(j->commit, w, e);
}

/* In their order; after a failure what is still on its way is waited for. */
static enum status run(struct job *j, struct err *e)
{
    enum status st = OK;

    while (!j->ended || j->taken < j->put) {
        int moved = 0;

        hand_out(j);
        for (; j->taken < j->put && is_done(j, j->taken); j->taken++, moved = 1)
            if (st == OK && (st = commit_one(j, work_at(j, j->taken), e)) != OK)
                j->ended = 1;
        if (j->peers)
            moved |= peers_poll(j->peers);
        if (moved || j->taken == j->put || pool_help(j->pool))
            continue;
        if (j->peers)
            clock_sleep(50e-6);
        else
            pool_wait(j->pool, work_at(j, j->taken));
    }
    return st;
}

/* ---- the end ---- */

static void say_count(int64_t n, const char *what)
{
    char number[32];

    if (n)
        say("%s: %s", what, log_thousands(number, n));
}

static enum status say_result(const struct job *j, const struct journal_point *p, struct err *e)
{
    enum status st = output_say(j->a->out, e);

    if (st == OK && j->a->validation)
        st = output_say(j->a->validation, e);
    if (p->duplicates)
        say_count(p->duplicates, "duplicates dropped");
    say_count(p->blank, "empty lines passed over");
    say_count(p->replaced, "U+FFFD put for what was not UTF-8");
    if (p->specials) {
        char number[32];

        say("special tokens named in the texts: %s; --specials-as-text takes them as text",
            log_thousands(number, p->specials));
    }
    return st;
}

static enum status run_all(struct job *j, struct err *e)
{
    int64_t slots = (int64_t)j->window * j->ranks;
    enum status st;

    j->work = mem_take((size_t)slots * sizeof *j->work);
    j->progress = progress_start("bytes", j->list.bytes);
    if (j->ranks > 1)
        j->peers = peers_open(j->world, j->window);
    st = run(j, e);
    if (j->peers)
        peers_close(j->peers);
    progress_end(&j->progress);
    if (st == OK)
        st = commit_finish(j->commit, e);
    if (st == OK)
        st = say_result(j, commit_point(j->commit), e);
    for (int64_t i = 0; i < slots; i++) {
        batch_free(&j->work[i].batch);
        encoded_free(&j->work[i].r);
    }
    mem_give(j->work);
    return st;
}

static void close_files(struct job *j, enum status st, struct err *e)
{
    commit_close(j->commit, st, e);
    batches_close(j->batches);
    input_list_free(&j->list);
}

static enum status tokenize_opened(struct job *j, struct err *e)
{
    enum status st = OK;

    if (j->rank == 0 && (st = open_files(j, e)) != OK)
        close_files(j, st, e);
    if ((st = all_fine(j, st, e)) != OK)
        return st;
    open_pool(j);
    if (j->rank == 0) {
        st = run_all(j, e);
        close_files(j, st, e);
    } else {
        peers_serve(j->world, j->pool, j->window);
    }
    pool_close(j->pool);
    return all_fine(j, st, e);
}

enum status tokenize(struct comm *world, const struct tokenize *a, struct err *e)
{
    struct job j = {
        .a = a, .world = world, .rank = world ? world->rank : 0, .ranks = world ? world->size : 1
    };
    enum status st;

    log_speaker(j.rank == 0);
    st = open_tokenizer(&j, e);
    if (st == OK)
        st = tokenize_opened(&j, e);
    document_ids_close(&j.ids);
    mem_give(j.json);
    return st;
}
