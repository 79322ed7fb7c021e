#include "infer/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "parallel/agree.h"

enum { CHUNK = 1 << 20 };
static const char magic[8] = { 'p', 'a', 'r', 't', 's', ' ', '1', '\n' };

struct head {
    char magic[8];
    int64_t unit, bytes;
};
struct tail {
    char hash[32]; /* of head and data */
};

struct path {
    char text[8192];
};
static struct path in_folder(const struct parts *p, const char *name)
{
    struct path x;

    snprintf(x.text, sizeof x.text, "%s/%s", p->folder, name);
    return x;
}

/* ---- reading what is there ---- */

/* Does the record at `at` end as it should? 0: cut off, or the disk lied. */
static int is_whole(struct file *f, int64_t at, const struct head *h)
{
    struct hash_stream *hash = hash_open();
    char *data = mem_take(CHUNK);
    struct hash_text have;
    struct tail t = { "" };
    int good = 1;

    hash_add(hash, h, sizeof *h);
    at += (int64_t)sizeof *h;
    for (int64_t done = 0; done < h->bytes && good; done += CHUNK) {
        size_t n = (size_t)min_i64(CHUNK, h->bytes - done);
        good = file_read_at(f, data, n, at + done, NULL) == OK;
        hash_add(hash, data, n);
    }
    good = good && file_read_at(f, &t, sizeof t, at + h->bytes, NULL) == OK;
    have = hash_close(hash);
    mem_give(data);
    return good && memcmp(have.s, t.hash, sizeof t.hash) == 0;
}

/* Records up to the first that is not whole: what follows one that was cut off is unknown. */
static void scan(struct parts *p, int file)
{
    struct file *f = &p->files[file];
    int64_t size = file_size(f), at = 0;
    struct head h;

    while (at + (int64_t)(sizeof h + sizeof(struct tail)) <= size &&
           file_read_at(f, &h, sizeof h, at, NULL) == OK &&
           memcmp(h.magic, magic, sizeof magic) == 0 && h.unit >= 0 && h.unit < p->units &&
           h.bytes >= 0 && h.bytes <= size - at - (int64_t)(sizeof h + sizeof(struct tail)) &&
           is_whole(f, at, &h)) {
        p->ndone += p->record[h.unit].file < 0;
        p->record[h.unit] =
            (struct part_record){ .file = file, .at = at + (int64_t)sizeof h, .bytes = h.bytes };
        at += (int64_t)(sizeof h + sizeof(struct tail)) + h.bytes;
    }
}

static void forget_files(struct parts *p)
{
    for (int i = 0; i < p->nfiles; i++)
        file_close(&p->files[i], NULL);
    mem_give(p->files);
    mem_give(p->record);
    p->files = NULL;
    p->record = NULL;
    p->nfiles = 0;
}

/* Every file of the folder; also the number of the next attempt. */
static enum status scan_all(struct parts *p, struct err *e)
{
    char **names;
    int n, rank;
    int64_t attempt;
    enum status st = file_list(p->folder, &names, &n, e);

    if (st != OK)
        return st;
    forget_files(p);
    p->ndone = 0;
    p->files = mem_take(sizeof *p->files * (size_t)max_i64(1, n));
    p->record = mem_take(sizeof *p->record * (size_t)max_i64(1, p->units));
    for (int64_t u = 0; u < p->units; u++)
        p->record[u].file = -1;
    for (int i = 0; i < n && st == OK; i++) {
        if (sscanf(names[i], "part-%" SCNd64 "-%d", &attempt, &rank) != 2)
            continue;
        p->attempt = max_i64(p->attempt, attempt + 1);
        st = file_open(&p->files[p->nfiles], in_folder(p, names[i]).text, FILE_READ, e);
        if (st == OK)
            scan(p, p->nfiles++);
    }
    mem_give(names);
    return st;
}

/* ---- opening ---- */

static int has_parts(const struct parts *p)
{
    char **names;
    int n, found = 0;

    if (file_list(p->folder, &names, &n, NULL) != OK)
        return 0;
    for (int i = 0; i < n; i++)
        found |= strncmp(names[i], "part-", 5) == 0;
    mem_give(names);
    return found;
}

static enum status make_folder(struct parts *p, const char *out, const char *job, struct err *e)
{
    struct path dir;
    char *slash;
    enum status st;

    snprintf(dir.text, sizeof dir.text, "%s", out);
    if ((slash = strrchr(dir.text, '/')) && slash > dir.text) {
        *slash = 0;
        if (!file_is_dir(dir.text))
            return err_set(e, E_FILE, "%s: its folder does not exist; make it first", out);
    }
    st = file_make_dirs(p->folder, e);
    return st == OK ? file_write_whole(in_folder(p, "job").text, job, strlen(job), e) : st;
}

static enum status check_job(struct parts *p, const char *out, const char *job, struct err *e)
{
    struct path at = in_folder(p, "job");
    char *text;
    size_t n;
    enum status st;

    if (!file_exists(at.text) || !has_parts(p))
        return make_folder(p, out, job, e);
    if ((st = file_read_text(at.text, (size_t)1 << 24, &text, &n, e)) != OK)
        return st;
    if (strcmp(text, job) != 0)
        st = err_set(e, E_INPUT,
                     "%s holds the unfinished results of another job (another model, input or "
                     "option): remove it, or choose another name than %s",
                     p->folder, out);
    mem_give(text);
    return st;
}

static enum status open_first(struct parts *p, const char *out, const char *job, struct err *e)
{
    enum status st;

    if (file_is_dir(out))
        return err_set(e, E_INPUT, "%s is a folder: --output names a file", out);
    st = check_job(p, out, job, e);
    if (st == OK)
        st = scan_all(p, e);
    for (int64_t u = 0; u < p->units && st == OK; u++)
        p->done[u] = p->record[u].file >= 0;
    forget_files(p);
    return st;
}

enum status parts_open(struct parts *p, struct comm *world, const char *out, const char *job,
                       int64_t units, struct err *e)
{
    enum status st = OK;

    *p = (struct parts){ .world = world, .units = units, .f = { .fd = -1 } };
    p->done = mem_take((size_t)max_i64(1, units));
    snprintf(p->folder, sizeof p->folder, "%s.parts", out);
    if (world->rank == 0)
        st = open_first(p, out, job, e);
    if ((st = agree(world, st, e)) != OK)
        return st;
    comm_bytes_from(world, p->done, (size_t)max_i64(1, units), 0);
    comm_bytes_from(world, &p->ndone, sizeof p->ndone, 0);
    comm_bytes_from(world, &p->attempt, sizeof p->attempt, 0);
    return OK;
}

void parts_close(struct parts *p)
{
    file_close(&p->f, NULL);
    forget_files(p);
    mem_give(p->done);
    p->done = NULL;
}

void parts_give_up(struct parts *p)
{
    if (p->world && p->world->rank == 0 && !has_parts(p))
        file_remove_tree(p->folder, NULL);
}

/* ---- writing ---- */

enum status parts_begin(struct parts *p, int64_t unit, int64_t bytes, struct err *e)
{
    struct head h = { .unit = unit, .bytes = bytes };
    char name[64];

    if (p->f.fd < 0) {
        enum status st;
        snprintf(name, sizeof name, "part-%04" PRId64 "-%06d", p->attempt, p->world->rank);
        st = file_open(&p->f, in_folder(p, name).text, FILE_CREATE, e);
        if (st != OK)
            return st;
    }
    memcpy(h.magic, magic, sizeof magic);
    p->hash = hash_open();
    return parts_put(p, &h, sizeof h, e);
}

enum status parts_put(struct parts *p, const void *data, int64_t bytes, struct err *e)
{
    enum status st = file_write_at(&p->f, data, (size_t)bytes, p->at, e);

    hash_add(p->hash, data, (size_t)bytes);
    p->at += bytes;
    return st;
}

enum status parts_end(struct parts *p, struct err *e)
{
    struct hash_text h = hash_close(p->hash);
    struct tail t;
    enum status st;

    p->hash = NULL;
    memcpy(t.hash, h.s, sizeof t.hash);
    st = file_write_at(&p->f, &t, sizeof t, p->at, e);
    p->at += (int64_t)sizeof t;
    return st;
}

/* ---- the end ---- */

enum status parts_collect(struct parts *p, struct err *e)
{
    enum status st = agree(p->world, file_close(&p->f, e), e);

    if (st == OK && p->world->rank == 0) {
        st = scan_all(p, e);
        if (st == OK && p->ndone != p->units)
            st = err_set(e, E_FILE,
                         "%s: %" PRId64 " of %" PRId64
                         " records are there: the file system lost some; start again to go on",
                         p->folder, p->ndone, p->units);
    }
    return agree(p->world, st, e);
}

int64_t parts_bytes(const struct parts *p, int64_t unit)
{
    return p->record[unit].bytes;
}

enum status parts_read(struct parts *p, int64_t unit, int64_t at, void *data, int64_t bytes,
                       struct err *e)
{
    const struct part_record *r = &p->record[unit];

    BUG_IF(at < 0 || at + bytes > r->bytes);
    return file_read_at(&p->files[r->file], data, (size_t)bytes, r->at + at, e);
}

enum status parts_remove(struct parts *p, struct err *e)
{
    forget_files(p);
    return file_remove_tree(p->folder, e);
}
