#include "checkpoint/checkpoint.h"

#include "base/arena.h"
#include "base/log.h"
#include "checkpoint/read.h"
#include "checkpoint/shard.h"
#include "hf/json_text.h"
#include "parallel/agree.h"
#include "store/h5.h"

#include <stdio.h>
#include <string.h>

struct save {
    const struct grid *g;
    const struct checkpoint_scalars *s;
    const struct checkpoint_texts *x;
    char final[4096], beside[4096]; /* step_N, step_N.tmp-ATTEMPT */
};

static enum status set_paths(struct save *v, const char *run_dir, struct err *e)
{
    size_t room = sizeof v->final - 32; /* for the names of files inside */
    int n = snprintf(v->final, room, "%s/step_%08lld", run_dir, (long long)v->s->step);
    int m = snprintf(v->beside, room, "%s.tmp-%lld", v->final, (long long)v->s->attempt);

    if (n >= (int)room || m >= (int)room)
        return err_set(e, E_FILE, "%.60s...: the path is too long", run_dir);
    return OK;
}

/* ---- what all ranks wrote, on rank 0 ---- */

struct summary {
    int64_t nslabs, nblocks, bytes;
};

/* A multiple of 8: the next rank's slabs follow. */
static size_t packed_bytes(const struct summary *m)
{
    size_t n = (size_t)m->nslabs * sizeof(struct checkpoint_slab) +
               (size_t)m->nblocks * sizeof(struct hash_text);

    return (n + 7) / 8 * 8;
}

/* File 0 is index.h5, the others are in rank order. */
static void take_shard(struct checkpoint *c, int rank, const struct summary *m, const char *packed)
{
    struct checkpoint_file *f = &c->file[c->nfiles];
    const struct checkpoint_slab *slabs = (const struct checkpoint_slab *)(const void *)packed;

    snprintf(f->name, sizeof f->name, "rank_%05d.h5", rank);
    f->f.fd = -1;
    f->bytes = m->bytes;
    f->nblocks = (int)m->nblocks;
    f->block = mem_take((size_t)m->nblocks * sizeof *f->block);
    memcpy(f->block, slabs + m->nslabs, (size_t)m->nblocks * sizeof *f->block);
    for (int64_t i = 0; i < m->nslabs; i++) {
        c->slab[c->nslabs] = slabs[i];
        c->slab[c->nslabs++].file = c->nfiles;
    }
    c->nfiles++;
}

/* All ranks' shards become files and slabs of c, on rank 0 only. */
static void gather(struct checkpoint *c, struct comm *world, const struct shard *mine)
{
    size_t n = (size_t)world->size, most = 0, total = 0;
    struct summary m = { mine->nslabs, mine->nblocks, mine->bytes },
                   *all = mem_take(n * sizeof *all);
    char *send, *packed;

    comm_bytes_all(world, &m, all, sizeof m);
    for (size_t i = 0; i < n; i++) {
        most = packed_bytes(&all[i]) > most ? packed_bytes(&all[i]) : most;
        total += (size_t)all[i].nslabs;
    }
    send = mem_take(most);
    packed = mem_take(most * n);
    if (m.nslabs) {
        memcpy(send, mine->slab, (size_t)m.nslabs * sizeof *mine->slab);
        memcpy(send + (size_t)m.nslabs * sizeof *mine->slab, mine->block,
               (size_t)m.nblocks * sizeof *mine->block);
    }
    comm_bytes_all(world, send, packed, most);
    if (world->rank == 0) {
        c->file = mem_take((n + 1) * sizeof *c->file);
        c->slab = mem_take(total * sizeof *c->slab);
        c->file[0].f.fd = -1;
        c->nfiles = 1;
        for (size_t i = 0; i < n; i++)
            if (all[i].bytes)
                take_shard(c, (int)i, &all[i], packed + i * most);
        manifest_sort(c);
    }
    mem_give(packed);
    mem_give(send);
    mem_give(all);
}

/* ---- index.h5 ---- */

static enum status add_tensor(struct h5 *f, const struct checkpoint *c, int first, int n,
                              struct err *e)
{
    const struct checkpoint_slab *s = c->slab + first;
    struct h5_part *part = mem_take((size_t)n * sizeof *part);
    char name[256];
    enum status st;

    for (int i = 0; i < n; i++) {
        snprintf(part[i].file, sizeof part[i].file, "%s", c->file[s[i].file].name);
        shard_dataset_name(part[i].dataset, &s[i], 0);
        part[i].where = s[i].box;
    }
    shard_dataset_name(name, s, 1);
    st = h5_virtual(f, name, s->dtype, s->nd, s->global, part, n, e);
    mem_give(part);
    return st;
}

static enum status add_root(struct h5 *f, const struct save *v, struct err *e)
{
    enum status st = checkpoint_scalars_write(f, v->s, e);

    if (st == OK)
        st = h5_set_i64(f, "/", "eod", &v->x->eod, 1, e);
    if (st == OK)
        st = h5_set_text(f, "/", "data_hash", v->x->data_hash ? v->x->data_hash : "", e);
    if (st == OK)
        st = h5_set_text(f, "/", "format", CHECKPOINT_FORMAT, e);
    if (st == OK)
        st = h5_set_text(f, "/", "rope_layout", "half", e);
    return st;
}

static enum status write_texts(const char *path, const struct save *v,
                               const struct manifest_texts *x, struct err *e)
{
    struct file f;
    enum status st = file_open(&f, path, FILE_UPDATE, e), closed;

    if (st == OK && x->input_nml.bytes)
        st = file_write_at(&f, v->x->input_nml, (size_t)x->input_nml.bytes, x->input_nml.at, e);
    if (st == OK && x->tokenizer_json.bytes)
        st = file_write_at(&f, v->x->tokenizer_json, (size_t)x->tokenizer_json.bytes,
                           x->tokenizer_json.at, e);
    closed = file_close(&f, e);
    return st == OK ? closed : st;
}

static enum status write_index(struct checkpoint *c, const struct save *v, struct manifest_texts *x,
                               struct err *e)
{
    struct checkpoint_file *file = &c->file[0];
    struct shard index = { 0 };
    struct h5 *f = NULL;
    char path[4096 + 32];
    int n;
    enum status st, closed;

    snprintf(file->name, sizeof file->name, "index.h5");
    snprintf(path, sizeof path, "%s/%s", v->beside, file->name);
    st = h5_create(&f, path, 4096, 1, e);
    for (int i = 0; i < c->nslabs && st == OK; i += n) {
        manifest_find(c, c->slab[i].kind, c->slab[i].name, &n);
        st = add_tensor(f, c, i, n, e);
    }
    if (st == OK)
        st = add_root(f, v, e);
    x->input_nml.bytes = v->x->input_nml ? (int64_t)strlen(v->x->input_nml) : 0;
    x->tokenizer_json.bytes = v->x->tokenizer_json ? (int64_t)v->x->tokenizer_bytes : 0;
    if (st == OK && x->input_nml.bytes)
        st = h5_dataset(f, "/input_nml", U8, 1, &x->input_nml.bytes, &x->input_nml.at, e);
    if (st == OK && x->tokenizer_json.bytes)
        st = h5_dataset(f, "/tokenizer_json", U8, 1, &x->tokenizer_json.bytes,
                        &x->tokenizer_json.at, e);
    closed = h5_close(f, e);
    st = st == OK ? closed : st;
    if (st == OK)
        st = write_texts(path, v, x, e);
    if (st == OK)
        st = shard_seal(&index, path, e);
    file->bytes = index.bytes;
    file->block = index.block;
    file->nblocks = index.nblocks;
    return st;
}

static enum status write_manifest(struct checkpoint *c, const struct save *v,
                                  const struct manifest_texts *x, struct err *e)
{
    char path[4096 + 32], *text;
    enum status st;

    c->scalars = *v->s;
    c->eod = v->x->eod;
    snprintf(c->data_hash, sizeof c->data_hash, "%s", v->x->data_hash ? v->x->data_hash : "");
    c->dp = v->g->dp;
    c->tp = v->g->tp;
    c->pp = v->g->pp;
    c->cp = v->g->cp;
    c->ranks = v->g->ranks;
    snprintf(path, sizeof path, "%s/MANIFEST.json", v->beside);
    text = manifest_write(c, x);
    st = file_write_whole(path, text, strlen(text), e);
    mem_give(text);
    return st == OK ? file_sync_dir(v->beside, e) : st;
}

/* ---- the final name ---- */

static enum status digest_of(const char *dir, char digest[33], int all_blocks, struct err *e)
{
    struct checkpoint c;
    enum status st = checkpoint_open(&c, dir, e);

    if (st != OK)
        return st;
    st = checkpoint_digest(&c, digest, e);
    if (st == OK && all_blocks)
        st = checkpoint_check_blocks(&c, e);
    checkpoint_close(&c);
    return st;
}

static enum status move_away(const char *path, struct err *e)
{
    char bad[4096 + 32];
    int k = 1;

    do
        snprintf(bad, sizeof bad, "%s.bad-%d", path, k++);
    while (file_exists(bad));
    warn("%s is not a good checkpoint; it is now %s", path, bad);
    return file_rename(path, bad, e);
}

/* What is there already under the final name? *keep: the same state, nothing to do. */
static enum status judge_existing(const struct save *v, int *keep, struct err *e)
{
    char old[33], new[33];
    enum status st;

    if (digest_of(v->final, old, 1, NULL) != OK)
        return move_away(v->final, e);
    if ((st = digest_of(v->beside, new, 0, e)) != OK)
        return st;
    if (strcmp(old, new) == 0) {
        *keep = 1;
        return OK;
    }
    return err_set(
        e, E_FILE,
        "%s: is there already with another state (digest %s, this run has %s): move it away or "
        "choose another directory",
        v->final, old, new);
}

static enum status commit(const struct save *v, const char *run_dir, struct err *e)
{
    int keep = 0;
    enum status st = file_exists(v->final) ? judge_existing(v, &keep, e) : OK;

    if (st != OK)
        return st;
    if (keep)
        return file_remove_tree(v->beside, e);
    if ((st = file_rename(v->beside, v->final, e)) != OK)
        return st;
    st = file_sync_dir(run_dir, e);
    if (st != OK)
        file_rename(v->final, v->beside, NULL);
    return st;
}

/* ---- all of it ---- */

static enum status begin(const struct save *v, const char *run_dir, struct err *e)
{
    enum status st = file_make_dirs(run_dir, e);

    if (st == OK)
        st = file_remove_tree(v->beside, e);
    return st == OK ? file_make_dirs(v->beside, e) : st;
}

/* Rank 0, when every shard is on disk. */
static enum status finish(struct checkpoint *c, const struct save *v, const char *run_dir,
                          struct err *e)
{
    struct manifest_texts x = { { 0 }, { 0 } };
    enum status st = write_index(c, v, &x, e);

    if (st == OK)
        st = write_manifest(c, v, &x, e);
    return st == OK ? commit(v, run_dir, e) : st;
}

enum status checkpoint_save(const char *run_dir, const struct grid *g, const struct ops *ops,
                            struct queue *q, const struct params *ps, const struct piece *pieces,
                            int npieces, const struct checkpoint_scalars *s,
                            const struct checkpoint_texts *x, struct err *e)
{
    struct save v = { .g = g, .s = s, .x = x };
    struct err own = { "" };
    struct checkpoint c = { .nfiles = 0 };
    struct shard shard = { 0 };
    char path[4096 + 32];
    enum status st;

    (void)ps;
    e = e ? e : &own;
    st = set_paths(&v, run_dir, e);
    if (st == OK && g->rank == 0)
        st = begin(&v, run_dir, e);
    if ((st = agree_silent(g->world, st, e)) != OK)
        goto done;
    snprintf(path, sizeof path, "%s/rank_%05d.h5", v.beside, g->rank);
    st = shard_write(&shard, path, s, g->rank, ops, q, pieces, npieces, e);
    if (st != OK)
        err_prefix(e, "rank %d", g->rank);
    if ((st = agree_silent(g->world, st, e)) != OK)
        goto done;
    gather(&c, g->world, &shard);
    if (g->rank == 0)
        st = finish(&c, &v, run_dir, e);
    st = agree_silent(g->world, st, e);
done:
    shard_free(&shard);
    checkpoint_close(&c);
    if (st != OK && g->rank == 0)
        file_remove_tree(v.beside, NULL);
    return st;
}
