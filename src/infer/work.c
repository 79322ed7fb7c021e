#include "infer/work.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "convert/progress.h"
#include "parallel/agree.h"

int work_is_jsonl(const char *path)
{
    static const char *const endings[] = { ".jsonl", ".ndjson", ".json" };
    size_t n = strlen(path);

    for (int i = 0; i < COUNT_OF(endings); i++)
        if (n >= strlen(endings[i]) && strcmp(path + n - strlen(endings[i]), endings[i]) == 0)
            return 1;
    return 0;
}

void work_note(struct work *w, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    json_text_add(&w->job, "%s\n", line);
}

enum status work_note_input(struct work *w, const char *path, struct err *e)
{
    const void *at;
    size_t bytes;
    struct file f;
    struct hash_text h;
    enum status st = file_open(&f, path, FILE_READ, e);

    if (st != OK)
        return st;
    if (file_size(&f) == 0) {
        file_close(&f, NULL);
        return err_set(e, E_FILE, "%s: the file is empty", path);
    }
    st = file_map(&f, &at, &bytes, e);
    if (st == OK) {
        h = hash_bytes(at, bytes);
        work_note(w, "input %s %s", path, h.s);
        file_unmap(at, bytes);
    }
    file_close(&f, NULL);
    return st;
}

int work_leads(const struct work *w)
{
    return w->r.g.tp_rank == 0 && w->r.g.pp_rank == w->r.g.pp - 1;
}

enum status work_stop_asked(const struct work *w, struct err *e)
{
    if (!watch_stop_asked(w->parts.folder, w->r.g.rank))
        return OK;
    return err_set(e, E_STOP, "stopped as asked; what is done is in %s: start again to go on",
                   w->parts.folder);
}

/* ---- rank 0: what is to be done, and how it is cut ---- */

/* With tp, whose ranks share the tokens of a pass, a row or the number of rows grows to a multiple;
 * what is added counts nowhere, so that units do not depend on the layout. */
static enum status cut(struct work *w, int ranks, struct err *e)
{
    const struct infer_options *o = w->o;
    struct config *c = w->r.c;
    int tp = (int)o->tp, pp = (int)o->pp, dp = (int)o->dp;
    int64_t S = w->S, B = w->B;
    enum status st = grid_sizes(ranks, tp, 1, pp, &dp, e);

    if (st != OK)
        return st;
    if (w->new_tokens)
        B = ceil_div(B, tp) * tp;
    else if (B * S % tp)
        S = ceil_div(S, tp) * tp;
    w->units = ceil_div(w->nrows, w->B);
    w->in_flight = pp == 1 ? 1 : w->new_tokens ? pp : 2 * pp;
    w->in_flight = max_i64(1, min_i64(w->in_flight, ceil_div(w->units, dp)));
    c->parallel.tp = tp;
    c->parallel.pp = pp;
    c->parallel.dp = dp;
    c->train.sequence_length = S;
    c->train.micro_batch_size = B;
    c->train.global_batch_size = B * w->in_flight * dp;
    c->debug.attention =
        ATTENTION_OWN; /* others take all keys of a sequence for those of the call */
    c->model.max_position_embeddings = max_i64(c->model.max_position_embeddings, S);
    return config_check_rules(c, e);
}

static enum status look(struct work *w, int ranks, struct err *e)
{
    const struct infer_options *o = w->o;
    enum status st = grid_check_launcher(ranks, e);

    if (strlen(o->out) > 4000)
        return err_set(e, E_INPUT, "--output: a path of more than 4000 bytes");
    for (int i = 0; i < o->ninputs && st == OK; i++)
        st = output_check(o->out, o->input[i], e);
    if (st == OK)
        st = source_read(&w->model, w->r.c, o, e);
    if (st != OK)
        return st;
    work_note(w, "pretrain-infer " PACKAGE_VERSION " %s %s", w->kind->name, w->model.mark);
    if ((st = w->kind->read(w, e)) != OK || (st = cut(w, ranks, e)) != OK)
        return st;
    work_note(w, "dtype %s; sequences %" PRId64 " of %" PRId64 ", %" PRId64 " at a time",
              config_word(KEY_train_dtype, w->r.c->train.dtype).s, w->nrows, w->S, w->B);
    return OK;
}

/* ---- all ranks ---- */

static enum status share(struct work *w, struct comm *world, struct err *e)
{
    char *json = w->model.tokenizer_json, path[4096];
    int64_t *const numbers[] = { &w->S,          &w->B,     &w->stride, &w->in_flight,
                                 &w->new_tokens, &w->units, &w->nrows };
    enum status st = OK;

    comm_bytes_from(world, w->r.c, sizeof *w->r.c, 0);
    comm_bytes_from(world, &w->model, sizeof w->model, 0);
    w->model.tokenizer_json = world->rank == 0 ? json : NULL;
    for (int i = 0; i < COUNT_OF(numbers); i++)
        comm_bytes_from(world, numbers[i], sizeof *numbers[i], 0);
    items_share(&w->items, world);
    memcpy(path, w->tokens.path, sizeof path);
    comm_bytes_from(world, path, sizeof path, 0);
    if (world->rank != 0 && path[0])
        st = tokens_open(&w->tokens, path, e);
    return agree(world, st, e);
}

static enum status start(struct work *w, struct comm *world, struct err *e)
{
    enum status st = OK;

    if (world->rank == 0)
        st = look(w, world->size, e);
    if ((st = agree(world, st, e)) != OK || (st = share(w, world, e)) != OK)
        return st;
    st = parts_open(&w->parts, world, w->o->out, w->job.s, w->units, e);
    if (st != OK)
        return st;
    w->kind->ask(w);
    if ((st = run_open(&w->r, world, &w->use, e)) != OK ||
        (st = source_load(&w->model, &w->r, w->o->model, e)) != OK)
        return st;
    if (w->use.kept)
        pipeline_upload_places(&w->r.s.pipe);
    return w->kind->begin ? agree(world, w->kind->begin(w, e), e) : OK;
}

static void say_start(const struct work *w)
{
    const struct grid *g = &w->r.g;
    char n[32];

    say("%d rank%s = pp %d x dp %d x tp %d, %d thread%s each, %s; %s sequence%s, %" PRId64
        " at a time",
        g->ranks, g->ranks == 1 ? "" : "s", g->pp, g->dp, g->tp, w->r.s.threads,
        w->r.s.threads == 1 ? "" : "s", dtype_name(w->r.s.t), log_thousands(n, w->nrows),
        w->nrows == 1 ? "" : "s", w->B);
    say("memory  per rank: weights %.2f, activations%s %.2f, scratch %.2f MiB",
        (double)w->r.s.keep.peak / 1048576.0, w->use.kept ? ", keys and values" : "",
        (double)w->r.s.step.peak / 1048576.0, (double)w->r.s.scratch.peak / 1048576.0);
    if (w->parts.ndone)
        say("%" PRId64 " of %" PRId64 " parts are done already (%s)", w->parts.ndone, w->units,
            w->parts.folder);
}

/* Units that are not done go to the replicas in turn. Replicas do not wait for each other. */
static enum status do_units(struct work *w, struct err *e)
{
    int64_t *mine = mem_take(sizeof *mine * (size_t)max_i64(1, w->in_flight));
    struct progress p = progress_start("parts", max_i64(1, w->units));
    int64_t seen = 0;
    int n = 0;
    enum status st = OK;

    for (int64_t u = 0; u < w->units && st == OK; u++) {
        if (!w->parts.done[u] && seen++ % w->r.g.dp == w->r.g.dp_rank)
            mine[n++] = u;
        if (n == 0 || (n < w->in_flight && u + 1 < w->units))
            continue;
        st = w->kind->pass(w, mine, n, e);
        if (st == OK)
            st = work_stop_asked(w, e);
        st = agree_silent(w->r.g.model, st, e);
        progress_show(&p, u + 1);
        n = 0;
    }
    progress_end(&p);
    mem_give(mine);
    return agree(w->r.g.world, st, e);
}

static enum status write_out(struct work *w, struct err *e)
{
    char path[4096 + 8];
    enum status st;

    snprintf(path, sizeof path, "%s.tmp", w->o->out);
    st = file_remove(path, e);
    if (st == OK)
        st = w->kind->finish(w, path, e);
    if (st == OK)
        st = file_rename(path, w->o->out, e);
    if (st != OK) {
        file_remove(path, NULL);
        return st;
    }
    return parts_remove(&w->parts, e);
}

static void give_all(struct work *w)
{
    if (w->kind->end)
        w->kind->end(w);
    parts_close(&w->parts);
    if (w->r.s.c)
        run_end(&w->r);
    if (w->r.g.world)
        grid_free(&w->r.g);
    items_free(&w->items);
    if (w->tokens.path[0])
        tokens_close(&w->tokens);
    source_free(&w->model);
    codec_close(w->codec);
    mem_give(w->job.s);
    mem_give(w->r.c);
    mem_give(w);
}

enum status work_run(struct comm *world, const struct infer_options *o,
                     const struct work_kind *kind, void *own)
{
    struct err *e = mem_take(sizeof *e);
    struct work *w = mem_take(sizeof *w);
    enum status st;

    log_speaker(world->rank == 0);
    watch_start();
    w->o = o;
    w->kind = kind;
    w->own = own;
    w->parts.f.fd = -1;
    w->r.c = mem_take(sizeof *w->r.c);
    st = start(w, world, e);
    if (st == OK) {
        say_start(w);
        st = do_units(w, e);
    }
    if (st == OK && (st = parts_collect(&w->parts, e)) == OK) {
        if (world->rank == 0)
            st = write_out(w, e);
        st = agree(world, st, e);
    }
    if (st != OK)
        parts_give_up(&w->parts);
    give_all(w);
    mem_give(e);
    return st;
}
