#include "convert/export_stream.h"

#include "base/arena.h"
#include "base/log.h"
#include "hf/json_text.h"
#include "hf/safetensors.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

/* The folder is ours if this file is in it and nothing that we would not write. */
static const char marker[] = "pretrain-export.json";
static const char marker_text[] = "{\n  \"format\": \"pretrain export\",\n  \"version\": 1\n}\n";
static const char *const names[] = { "config.json",
                                     "generation_config.json",
                                     "tokenizer.json",
                                     "tokenizer.model",
                                     "tokenizer_config.json",
                                     "model.safetensors",
                                     "model.safetensors.index.json",
                                     marker };

static int is_shard_name(const char *s)
{
    int i, n, end = 0;

    return sscanf(s, "model-%5d-of-%5d.safetensors%n", &i, &n, &end) == 2 && end > 0 && !s[end];
}

static int is_ours(const char *s)
{
    for (int i = 0; i < COUNT_OF(names); i++)
        if (strcmp(names[i], s) == 0)
            return 1;
    return is_shard_name(s);
}

enum status export_may_replace_folder(const char *path, struct err *e)
{
    char **list;
    const char *foreign = NULL;
    int n, marked = 0;
    enum status st;

    if (!file_exists(path))
        return OK;
    if (!file_is_dir(path))
        return err_set(e, E_INPUT,
                       "%s: is a file; a safetensors export is a folder: choose another name",
                       path);
    if ((st = file_list(path, &list, &n, e)) != OK)
        return st;
    for (int i = 0; i < n; i++) {
        marked |= strcmp(list[i], marker) == 0;
        if (!is_ours(list[i]))
            foreign = list[i];
    }
    if (n && (!marked || foreign))
        st = err_set(e, E_INPUT,
                     "%s: is there already and is not an export of this program (%s%s): choose "
                     "another name or "
                     "remove it",
                     path, foreign ? "it holds " : "it lacks ", foreign ? foreign : marker);
    mem_give(list);
    return st;
}

/* ---- shards ---- */

struct shards {
    struct st_tensor *t; /* [n] in the order of params.def, file = number of its shard */
    int n, files;
    int64_t bytes;
    char (*name)[48]; /* [files] */
};

static void plan_shards(struct shards *s, const struct export *x)
{
    int64_t in_file = 0, most = x->o->max_shard_bytes;

    s->n = x->ps.n;
    s->t = mem_take((size_t)s->n * sizeof *s->t);
    s->files = 1;
    for (int i = 0; i < s->n; i++) {
        const struct param *p = &x->ps.p[i];
        struct st_tensor *t = &s->t[i];
        int64_t bytes = (int64_t)dtype_size(x->dtype);

        snprintf(t->name, sizeof t->name, "%s", p->name);
        t->dtype = x->dtype;
        t->nd = p->nd;
        for (int d = 0; d < p->nd; d++)
            bytes *= t->shape[d] = p->global[d];
        if (most > 0 && in_file > 0 && in_file + bytes > most) {
            s->files++;
            in_file = 0;
        }
        t->file = s->files - 1;
        in_file += bytes;
        s->bytes += bytes;
    }
    s->name = mem_take((size_t)s->files * sizeof *s->name);
    for (int i = 0; i < s->files; i++)
        if (s->files == 1)
            snprintf(s->name[i], sizeof s->name[i], "model.safetensors");
        else
            snprintf(s->name[i], sizeof s->name[i], "model-%05d-of-%05d.safetensors", i + 1,
                     s->files);
}

struct target {
    struct st_writer *w;
    int tensor;
};

static enum status put(void *context, int64_t at, const void *data, int64_t n, struct err *e)
{
    struct target *t = context;

    return st_writer_put(t->w, t->tensor, at, data, n, e);
}

static enum status write_shard(struct export *x, const struct shards *s, int file,
                               const char *folder, struct err *e)
{
    struct target t = { NULL, 0 };
    char path[4096 + 64];
    int first = 0, n = 0;
    enum status st, closed;

    while (s->t[first].file != file)
        first++;
    while (first + n < s->n && s->t[first + n].file == file)
        n++;
    snprintf(path, sizeof path, "%s/%s", folder, s->name[file]);
    st = st_writer_open(&t.w, path, s->t + first, n, e);
    if (st != OK)
        return st;
    for (t.tensor = 0; t.tensor < n && st == OK; t.tensor++)
        st = export_stream(x, CHECKPOINT_WEIGHTS, &x->ps.p[first + t.tensor], x->dtype, put, &t, e);
    closed = st_writer_close(t.w, st == OK ? e : NULL);
    return st == OK ? closed : st;
}

static enum status write_index(const struct shards *s, const char *folder, struct err *e)
{
    const char **file_of = mem_take((size_t)s->n * sizeof *file_of);
    char path[4096 + 64];
    enum status st;

    for (int i = 0; i < s->n; i++)
        file_of[i] = s->name[s->t[i].file];
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    st = st_write_index(path, s->t, s->n, file_of, s->bytes, e);
    mem_give(file_of);
    return st;
}

/* ---- companions ---- */

static enum status write_text(const char *folder, const char *name, const char *text, size_t n,
                              struct err *e)
{
    char path[4096 + 64];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return file_write_whole(path, text, n, e);
}

static enum status write_tokenizer(const struct export *x, const char *folder, struct err *e)
{
    const struct checkpoint *c = &x->c;
    int64_t most = x->hf.max_position_embeddings;
    struct err why = { "" };
    char *text = hf_tokenizer_config_write(c->tokenizer_json, c->tokenizer_bytes,
                                           x->hf.eos_token_id, most, &why);
    enum status st;

    if (!text) {
        warn("%s: tokenizer_config.json names no eos_token", why.text);
        text = hf_tokenizer_config_write(c->tokenizer_json, c->tokenizer_bytes, -1, most, e);
    }
    st = text ? write_text(folder, "tokenizer_config.json", text, strlen(text), e) : E_FILE;
    if (st == OK)
        st =
            write_text(folder,
                       tokenizer_is_model(c->tokenizer_json, c->tokenizer_bytes) ? "tokenizer.model"
                                                                                 : "tokenizer.json",
                       c->tokenizer_json, c->tokenizer_bytes, e);
    mem_give(text);
    return st;
}

static enum status write_companions(const struct export *x, const char *folder, struct err *e)
{
    char *config = hf_config_write(&x->hf, dtype_name(x->dtype));
    char *generation = hf_generation_config_write(&x->hf);
    enum status st = write_text(folder, marker, marker_text, strlen(marker_text), e);

    if (st == OK)
        st = write_text(folder, "config.json", config, strlen(config), e);
    if (st == OK)
        st = write_text(folder, "generation_config.json", generation, strlen(generation), e);
    if (st == OK && x->c.tokenizer_json)
        st = write_tokenizer(x, folder, e);
    mem_give(config);
    mem_give(generation);
    return st;
}

enum status export_safetensors(struct export *x, const char *folder, struct err *e)
{
    struct shards s = { 0 };
    enum status st = file_make_dirs(folder, e);

    plan_shards(&s, x);
    for (int i = 0; i < s.files && st == OK; i++)
        st = write_shard(x, &s, i, folder, e);
    if (st == OK && s.files > 1)
        st = write_index(&s, folder, e);
    if (st == OK)
        st = write_companions(x, folder, e);
    if (st == OK)
        st = file_sync_dir(folder, e);
    mem_give(s.t);
    mem_give(s.name);
    return st;
}
