#include "convert/input_list.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/unpack.h"
#include "data/foreign.h"

enum { DEPTH_MAX = 40 };
#define KNOWN ".txt, .md, .jsonl, .ndjson, .json, or these with .gz or .zst"

/* ---- names ---- */

/* The length of path without the ending, if it has it. */
static size_t without(const char *path, size_t n, const char *ending)
{
    size_t k = strlen(ending);

    return n > k && strncasecmp(path + n - k, ending, k) == 0 ? n - k : 0;
}

static int ends_in(const char *path, const char *const *endings, int count)
{
    size_t n = strlen(path), gz = without(path, n, ".gz"), zst = without(path, n, ".zst");

    n = gz ? gz : zst ? zst : n;
    for (int i = 0; i < count; i++)
        if (without(path, n, endings[i]))
            return 1;
    return 0;
}

int input_is_jsonl(const char *path)
{
    static const char *const endings[] = { ".jsonl", ".ndjson", ".json" };

    return ends_in(path, endings, COUNT_OF(endings));
}

static int is_known(const char *path)
{
    static const char *const endings[] = { ".txt", ".md" };

    return input_is_jsonl(path) || ends_in(path, endings, COUNT_OF(endings));
}

const char *input_name(const struct input *in)
{
    return strcmp(in->path, "-") == 0 ? "standard input" : in->path;
}

enum input_format input_format_of(const char *name)
{
    static const char *const names[] = { "", "text", "jsonl", "lines" };

    for (int i = INPUT_TEXT; name && i <= INPUT_LINES; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum input_format)i;
    return INPUT_BY_NAME;
}

/* ---- files ---- */

enum status input_check(const char *path, int64_t *size, int64_t *changed, struct err *e)
{
    char head[FOREIGN_HEAD];
    struct foreign what;
    struct file f;
    int64_t n;
    enum status st;

    if (file_is_dir(path))
        return err_set(e, E_FILE, "%s: a directory; name the files in it", path);
    if ((st = file_open(&f, path, FILE_READ, e)) != OK)
        return st;
    *size = file_size(&f);
    *changed = file_changed(&f);
    n = min_i64(*size, FOREIGN_HEAD);
    st = file_read_at(&f, head, (size_t)n, 0, e);
    file_close(&f, NULL);
    if (st != OK || unpack_is(head, (size_t)n))
        return st;
    what = foreign_look(head, (size_t)n, *size);
    return what.is_text || what.is_raw
               ? OK
               : err_set(e, E_FILE, "%s: not text: it is %s; %s", path, what.what, what.cure);
}

static enum status add(struct input_list *l, const char *path, enum input_format format,
                       struct err *e)
{
    struct input *in;

    if (l->n == l->room) {
        int64_t room = 2 * l->room + 64;

        l->at = mem_grow(l->at, (size_t)l->room * sizeof *l->at, (size_t)room * sizeof *l->at);
        l->room = room;
    }
    in = &l->at[l->n++];
    *in = (struct input){ .path = mem_copy_text(path), .format = format };
    if (format == INPUT_BY_NAME)
        in->format = input_is_jsonl(path) ? INPUT_JSONL : INPUT_TEXT;
    if (strcmp(path, "-") == 0) {
        l->bytes = -1;
        return OK;
    }
    if (input_check(path, &in->size, &in->changed, e) != OK)
        return E_FILE;
    l->bytes += l->bytes >= 0 ? in->size : 0;
    return OK;
}

/* ---- folders ---- */

static int is_empty(const char *path)
{
    struct file f;
    int empty = file_open(&f, path, FILE_READ, NULL) == OK && file_size(&f) == 0;

    file_close(&f, NULL);
    return empty;
}

static void pass_over(struct input_list *l, const char *name)
{
    size_t n = strlen(l->names);

    if (l->unknown++ < 3)
        snprintf(l->names + n, sizeof l->names - n, "%s%.50s", n ? ", " : "", name);
}

static enum status add_folder(struct input_list *l, const char *dir, enum input_format format,
                              int depth, struct err *e)
{
    char **names, path[4096];
    int n;
    enum status st;

    if (depth > DEPTH_MAX)
        return err_set(e, E_FILE, "%s: folders in folders, %d deep; does a link lead back?", dir,
                       depth);
    if ((st = file_list(dir, &names, &n, e)) != OK)
        return st;
    for (int i = 0; i < n && st == OK; i++) {
        if (names[i][0] == '.')
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, names[i]) >= sizeof path)
            st = err_set(e, E_FILE, "%.60s...: the path is too long", path);
        else if (file_is_dir(path))
            st = add_folder(l, path, format, depth + 1, e);
        else if (!is_known(names[i]))
            pass_over(l, names[i]);
        else if (is_empty(path))
            l->empty++;
        else
            st = add(l, path, format, e);
    }
    mem_give(names);
    return st;
}

/* ---- the whole ---- */

static enum status add_operand(struct input_list *l, const char *path, enum input_format format,
                               struct err *e)
{
    int64_t before = l->n;
    enum status st;

    if (strcmp(path, "-") == 0) {
        if (format == INPUT_BY_NAME)
            return err_set(e, E_INPUT,
                           "-: say what comes on standard input: --format text, jsonl "
                           "or lines");
        return l->bytes < 0 ? err_set(e, E_INPUT, "-: standard input can be read only once")
                            : add(l, path, format, e);
    }
    if (!file_is_dir(path))
        return add(l, path, format, e);
    st = add_folder(l, path, format, 0, e);
    if (st == OK && l->n == before)
        st = err_set(e, E_FILE, "%s: a folder without a text: names must end in " KNOWN, path);
    return st;
}

enum status input_list_make(struct input_list *l, const char *const *operands, int n,
                            enum input_format format, struct err *e)
{
    enum status st = OK;

    *l = (struct input_list){ 0 };
    for (int i = 0; i < n && st == OK; i++)
        st = add_operand(l, operands[i], format, e);
    return st;
}

void input_list_say(const struct input_list *l)
{
    if (l->unknown)
        say("passed over in folders: %lld file%s that do%s not end in " KNOWN ": %s%s",
            (long long)l->unknown, l->unknown == 1 ? "" : "s", l->unknown == 1 ? "es" : "",
            l->names, l->unknown > 3 ? ", ..." : "");
    if (l->empty)
        say("passed over in folders: %lld empty file%s", (long long)l->empty,
            l->empty == 1 ? "" : "s");
}

void input_list_free(struct input_list *l)
{
    for (int64_t i = 0; i < l->n; i++)
        mem_give(l->at[i].path);
    mem_give(l->at);
    *l = (struct input_list){ 0 };
}
