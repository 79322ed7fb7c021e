#include "checkpoint/checkpoint.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "hf/json_text.h"
#include "parallel/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -1: not the name of a checkpoint */
static int64_t step_of(const char *name)
{
    char again[64];
    long long step;

    if (strncmp(name, "step_", 5) || strlen(name) > 25 ||
        strspn(name + 5, "0123456789") != strlen(name) - 5)
        return -1;
    step = strtoll(name + 5, NULL, 10);
    snprintf(again, sizeof again, "step_%08lld", step);
    return strcmp(again, name) ? -1 : step;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

enum status checkpoint_steps(const char *run_dir, int64_t **steps, int *n, struct err *e)
{
    char **names;
    int found;
    enum status st;

    *steps = NULL;
    *n = 0;
    if (!file_exists(run_dir))
        return OK;
    if ((st = file_list(run_dir, &names, &found, e)) != OK)
        return st;
    *steps = mem_take((size_t)found * sizeof **steps);
    for (int i = 0; i < found; i++)
        if (step_of(names[i]) >= 0)
            (*steps)[(*n)++] = step_of(names[i]);
    mem_give(names);
    qsort(*steps, (size_t)*n, sizeof **steps, newest_first);
    return OK;
}

static char *step_path(const char *run_dir, int64_t step)
{
    struct json_text t = { 0 };

    json_text_add(&t, "%s/step_%08lld", run_dir, (long long)step);
    return t.s;
}

static int is_good(const char *path, struct err *e)
{
    struct checkpoint c;
    int good = checkpoint_open(&c, path, e) == OK;

    if (good)
        checkpoint_close(&c);
    return good;
}

enum status checkpoint_newest(const char *run_dir, char *path, struct err *e)
{
    int64_t *steps;
    int n, found = 0;
    enum status st = checkpoint_steps(run_dir, &steps, &n, e);

    path[0] = 0;
    for (int i = 0; i < n && !found && st == OK; i++) {
        char *p = step_path(run_dir, steps[i]);
        struct err why = { "" };

        found = is_good(p, &why);
        if (found && strlen(p) < 4096)
            strcpy(path, p);
        if (!found)
            warn("%s", why.text);
        mem_give(p);
    }
    if (st == OK && n && !found)
        st = err_set(e, E_FILE,
                     "%s: none of its %d checkpoints is good: repair or move them, or set resume "
                     "to a path or "
                     "directory to a new one",
                     run_dir, n);
    mem_give(steps);
    return st;
}

/* The name is given up before the files are: what is left of a broken removal is stale, not a bad
 * checkpoint. */
static enum status drop(const char *run_dir, int64_t step, struct err *e)
{
    char *from = step_path(run_dir, step);
    struct json_text to = { 0 };
    enum status st;

    json_text_add(&to, "%s.tmp-old", from);
    st = file_remove_tree(to.s, e);
    if (st == OK)
        st = file_rename(from, to.s, e);
    if (st == OK)
        st = file_remove_tree(to.s, e);
    mem_give(to.s);
    mem_give(from);
    return st;
}

static enum status retain(const char *run_dir, int keep_last, int64_t keep_every, struct err *e)
{
    int64_t *steps;
    int n, good = 0;
    enum status st = checkpoint_steps(run_dir, &steps, &n, e);

    for (int i = 0; i < n && st == OK; i++) {
        char *path = step_path(run_dir, steps[i]);
        int is = is_good(path, NULL);

        mem_give(path);
        good += is;
        if (is && good > keep_last && good > 1 && !(keep_every > 0 && steps[i] % keep_every == 0))
            st = drop(run_dir, steps[i], e);
    }
    mem_give(steps);
    return st;
}

enum status checkpoint_retain(const char *run_dir, const struct grid *g, int keep_last,
                              int64_t keep_every, struct err *e)
{
    return agree_silent(g->world, g->rank == 0 ? retain(run_dir, keep_last, keep_every, e) : OK, e);
}

static void clean(const char *run_dir)
{
    char **names;
    int n;

    if (!file_exists(run_dir) || file_list(run_dir, &names, &n, NULL) != OK)
        return;
    for (int i = 0; i < n; i++) {
        struct json_text path = { 0 };
        struct err e = { "" };

        if (strncmp(names[i], "step_", 5) || !strstr(names[i], ".tmp-"))
            continue;
        json_text_add(&path, "%s/%s", run_dir, names[i]);
        if (file_remove_tree(path.s, &e) != OK)
            warn("a stale folder stays: %s", e.text);
        mem_give(path.s);
    }
    mem_give(names);
}

void checkpoint_clean(const char *run_dir, const struct grid *g)
{
    if (g->rank == 0)
        clean(run_dir);
    comm_barrier(g->world);
}
