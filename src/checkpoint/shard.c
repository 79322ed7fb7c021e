#include "checkpoint/shard.h"

#include "base/arena.h"
#include "checkpoint/manifest.h"
#include "checkpoint/pieces.h"
#include "store/h5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A slab while it is being written. */
struct source {
    struct checkpoint_slab *slab;
    struct operand from;   /* its elements, contiguous */
    struct hash_text hash; /* of the bytes that were sent to the file */
};

void shard_dataset_name(char name[256], const struct checkpoint_slab *s, int whole)
{
    int n = snprintf(name, 256, "/%s/%s", checkpoint_kind_names[s->kind], s->name);

    for (int d = 0; d < s->nd && !whole; d++)
        n += snprintf(name + n, 256 - (size_t)n, "%s%lld", d ? "_" : "/", (long long)s->box.off[d]);
}

static struct checkpoint_slab slab_of(const struct piece *p, int kind, enum dtype t,
                                      const struct box *b)
{
    struct checkpoint_slab s = {
        .kind = (enum checkpoint_kind)kind, .nd = p->p->nd, .box = *b, .dtype = t
    };

    memcpy(s.name, p->p->name, sizeof s.name);
    memcpy(s.global, p->p->global, sizeof s.global);
    return s;
}

/* All that this rank writes, kind by kind: an export reads the weights only. */
static struct source *list_sources(struct shard *s, const struct piece *pieces, int npieces)
{
    size_t most = (size_t)npieces * CHECKPOINT_KINDS * BOX_RUN_MAX;
    struct source *from = mem_take(most * sizeof *from);

    s->slab = mem_take(most * sizeof *s->slab);
    for (int k = 0; k < CHECKPOINT_KINDS; k++)
        for (int i = 0; i < npieces; i++) {
            const struct piece *p = &pieces[i];
            struct operand data = piece_operand(p, k);
            struct box part[BOX_RUN_MAX];
            int parts = p->writes ? piece_boxes(p, 0, piece_real(p), part) : 0;
            int64_t at = 0;

            for (int j = 0; j < parts; j++) {
                s->slab[s->nslabs] = slab_of(p, k, data.t, &part[j]);
                from[s->nslabs] =
                    (struct source){ &s->slab[s->nslabs], operand_at(data, at), { "" } };
                at += box_count(&part[j]);
                s->nslabs++;
            }
        }
    return from;
}

static enum status describe(struct h5 *f, const char *name, const struct checkpoint_slab *s,
                            struct err *e)
{
    enum status st = h5_set_text(f, name, "name", s->name, e);

    if (st == OK)
        st = h5_set_i64(f, name, "global_shape", s->global, s->nd, e);
    if (st == OK)
        st = h5_set_i64(f, name, "offset", s->box.off, s->nd, e);
    if (st == OK)
        st = h5_set_i64(f, name, "extent", s->box.ext, s->nd, e);
    if (st == OK)
        st = h5_set_text(f, name, "dtype", dtype_name(s->dtype), e);
    return st;
}

/* Our own open says why it cannot be made better than HDF5 would. */
static enum status make_file(const char *path, struct err *e)
{
    struct file f;
    enum status st = file_open(&f, path, FILE_CREATE, e);

    return st == OK ? file_close(&f, e) : st;
}

/* The file with room for the data. */
static enum status make_skeleton(struct shard *s, const char *path,
                                 const struct checkpoint_scalars *scalars, int rank, struct err *e)
{
    struct h5 *f = NULL;
    int64_t number = rank;
    enum status st = make_file(path, e), closed;

    if (st == OK)
        st = h5_create(&f, path, 4096, 0, e);
    if (st == OK)
        st = h5_set_text(f, "/", "format", CHECKPOINT_FORMAT, e);
    if (st == OK)
        st = h5_set_i64(f, "/", "step", &scalars->step, 1, e);
    if (st == OK)
        st = h5_set_i64(f, "/", "rank", &number, 1, e);
    for (int i = 0; i < s->nslabs && st == OK; i++) {
        char name[256];

        shard_dataset_name(name, &s->slab[i], 0);
        st = h5_dataset(f, name, s->slab[i].dtype, s->slab[i].nd, s->slab[i].box.ext,
                        &s->slab[i].offset, e);
        if (st == OK)
            st = describe(f, name, &s->slab[i], e);
    }
    closed = h5_close(f, e);
    return st == OK ? closed : st;
}

static enum status send_slab(struct file *f, struct source *from, const struct ops *ops,
                             struct queue *q, char *buffer, struct err *e)
{
    const struct checkpoint_slab *s = from->slab;
    int64_t n = box_count(&s->box), size = (int64_t)dtype_size(s->dtype),
            most = MANIFEST_BLOCK / size;
    struct hash_stream *h = hash_open();
    enum status st = OK;

    for (int64_t at = 0; at < n && st == OK; at += most) {
        size_t bytes = (size_t)(min_i64(most, n - at) * size);

        ops->download(q, buffer, operand_at(from->from, at).p, bytes);
        ops->sync(q);
        hash_add(h, buffer, bytes);
        st = file_write_at(f, buffer, bytes, s->offset + at * size, e);
    }
    from->hash = hash_close(h);
    return st;
}

static int by_place(const void *a, const void *b)
{
    int64_t x = ((const struct source *)a)->slab->offset,
            y = ((const struct source *)b)->slab->offset;

    return (x > y) - (x < y);
}

/* The slabs' bytes in `buffer` (n bytes from file offset `at`) go to their hashes; *next: the first
 * slab that is not done, h: its stream. */
static enum status compare(const struct source *from, int n, int *next, struct hash_stream **h,
                           const char *path, const char *buffer, int64_t at, int64_t bytes,
                           struct err *e)
{
    enum status st = OK;

    while (*next < n && st == OK) {
        const struct checkpoint_slab *s = from[*next].slab;
        int64_t begin = s->offset, end = begin + box_count(&s->box) * (int64_t)dtype_size(s->dtype);
        int64_t lo = max_i64(begin, at), hi = min_i64(end, at + bytes);
        struct hash_text is;

        if (lo >= at + bytes)
            break;
        if (!*h)
            *h = hash_open();
        if (hi > lo)
            hash_add(*h, buffer + (lo - at), (size_t)(hi - lo));
        if (end > at + bytes)
            break;
        is = hash_close(*h);
        *h = NULL;
        if (strcmp(is.s, from[*next].hash.s))
            st = err_set(e, E_FILE,
                         "%s: what is read back at byte %lld is not what was written there: "
                         "the disk or the file system is faulty",
                         path, (long long)begin);
        (*next)++;
    }
    return st;
}

/* Hash every block of f; with sources: their bytes must be what was sent. */
static enum status read_back(struct shard *s, struct file *f, struct source *from, int nfrom,
                             char *buffer, struct err *e)
{
    struct hash_stream *h = NULL;
    int next = 0;
    enum status st = OK;

    s->bytes = file_size(f);
    s->nblocks = (int)manifest_blocks(s->bytes);
    s->block = mem_take((size_t)s->nblocks * sizeof *s->block);
    qsort(from, (size_t)nfrom, sizeof *from, by_place);
    for (int i = 0; i < s->nblocks && st == OK; i++) {
        int64_t at = (int64_t)i * MANIFEST_BLOCK, n = min_i64(MANIFEST_BLOCK, s->bytes - at);

        st = file_read_at(f, buffer, (size_t)n, at, e);
        s->block[i] = hash_bytes(buffer, (size_t)n);
        if (st == OK)
            st = compare(from, nfrom, &next, &h, f->path, buffer, at, n, e);
    }
    if (h)
        hash_close(h);
    if (st == OK && next < nfrom)
        st = err_set(e, E_FILE, "%s: the file ends before its data", f->path);
    return st;
}

static enum status fill(struct shard *s, const char *path, struct source *from,
                        const struct ops *ops, struct queue *q, struct err *e)
{
    char *buffer = mem_take(MANIFEST_BLOCK);
    struct file f;
    enum status st = file_open(&f, path, FILE_UPDATE, e), closed;

    for (int i = 0; i < s->nslabs && st == OK; i++)
        st = send_slab(&f, &from[i], ops, q, buffer, e);
    if (st == OK)
        st = file_sync(&f, e);
    if (st == OK)
        st = read_back(s, &f, from, s->nslabs, buffer, e);
    closed = file_close(&f, e);
    mem_give(buffer);
    return st == OK ? closed : st;
}

enum status shard_write(struct shard *s, const char *path, const struct checkpoint_scalars *scalars,
                        int rank, const struct ops *ops, struct queue *q,
                        const struct piece *pieces, int npieces, struct err *e)
{
    struct source *from;
    enum status st = OK;

    *s = (struct shard){ 0 };
    from = list_sources(s, pieces, npieces);
    if (s->nslabs)
        st = make_skeleton(s, path, scalars, rank, e);
    if (s->nslabs && st == OK)
        st = fill(s, path, from, ops, q, e);
    mem_give(from);
    return st;
}

enum status shard_seal(struct shard *s, const char *path, struct err *e)
{
    char *buffer = mem_take(MANIFEST_BLOCK);
    struct source none;
    struct file f;
    enum status st = file_open(&f, path, FILE_UPDATE, e), closed;

    if (st == OK)
        st = file_sync(&f, e);
    if (st == OK)
        st = read_back(s, &f, &none, 0, buffer, e);
    closed = file_close(&f, e);
    mem_give(buffer);
    return st == OK ? closed : st;
}

void shard_free(struct shard *s)
{
    mem_give(s->slab);
    mem_give(s->block);
    *s = (struct shard){ 0 };
}
