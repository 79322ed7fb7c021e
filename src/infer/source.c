#include "infer/source.h"

#include <stdio.h>
#include <string.h>

#include "convert/import.h"
#include "hf/hf_config.h"
#include "hf/json_text.h"
#include "parallel/agree.h"

enum { TOKENIZER_MAX = 1 << 28 };

struct path {
    char text[4096 + 64];
};
static struct path inside(const char *dir, const char *name)
{
    struct path p;

    snprintf(p.text, sizeof p.text, "%s/%s", dir, name);
    return p;
}

/* 'it''s' */
static void put_text(struct json_text *t, const char *s)
{
    json_text_add(t, "'");
    for (; *s; s++)
        json_text_add(t, *s == '\'' ? "''" : "%c", *s);
    json_text_add(t, "'");
}

/* The input of one rank and one token; what the model and the command decide is filled in later. */
static enum status make_input(struct config *c, const struct infer_options *o, const char *dtype,
                              struct err *e)
{
    struct json_text t = { 0 };
    enum status st;

    json_text_add(&t, "&run directory = '-', device = '%s', threads = %lld /\n", o->device,
                  (long long)o->threads);
    json_text_add(&t,
                  "&train train_steps = 1, sequence_length = 1, global_batch_size = 1, "
                  "dtype = '%s' /\n&optim learning_rate = 1 /\n&data train = '-' /\n",
                  dtype);
    json_text_add(&t, "&debug backend = '%s' /\n&model init_from = ",
                  strcmp(dtype, "float64") == 0 ? "reference" : "auto");
    put_text(&t, o->model);
    json_text_add(&t, " /\n");
    st = config_parse(c, t.s, t.n, "the command line", NULL, 0, e);
    mem_give(t.s);
    return st;
}

/* ---- a checkpoint ---- */

static enum status hash_manifest(struct source *m, const char *dir, struct err *e)
{
    char *text;
    size_t n;
    enum status st =
        file_read_text(inside(dir, "MANIFEST.json").text, (size_t)1 << 30, &text, &n, e);

    if (st != OK)
        return st;
    memcpy(m->mark, hash_bytes(text, n).s, sizeof m->mark);
    mem_give(text);
    return OK;
}

static void take_texts(struct source *m, const struct checkpoint *ck)
{
    m->eos = ck->eod;
    if (!ck->tokenizer_json)
        return;
    m->tokenizer_json = mem_take(ck->tokenizer_bytes + 1);
    memcpy(m->tokenizer_json, ck->tokenizer_json, ck->tokenizer_bytes);
    m->tokenizer_bytes = ck->tokenizer_bytes;
}

static enum status take_input(struct source *m, struct config *c, const struct checkpoint *ck,
                              const struct infer_options *o, struct err *e)
{
    struct config *old = mem_take(sizeof *old);
    const char *name = "input of the checkpoint";
    int64_t shape[3];
    enum dtype t;
    enum status st = config_parse(old, ck->input_nml, strlen(ck->input_nml), name, NULL, 0, e);

    if (st == OK)
        st = make_input(c, o,
                        o->dtype ? o->dtype : config_word(KEY_train_dtype, old->train.dtype).s, e);
    if (st == OK)
        st = resolve_model(c, ck->input_nml, e);
    if (st == OK &&
        !checkpoint_shape(ck, CHECKPOINT_WEIGHTS, param_rows[P_EMBED].hf_name, shape, &t))
        st = err_set(e, E_FILE, "%s: there is no tensor %s", ck->dir, param_rows[P_EMBED].hf_name);
    if (st == OK) {
        c->model.vocab_size = shape[0];
        m->length = old->train.sequence_length;
        m->mask = old->data.document_mask;
    }
    mem_give(old);
    return st;
}

static enum status read_checkpoint(struct source *m, struct config *c,
                                   const struct infer_options *o, struct err *e)
{
    struct checkpoint ck;
    enum status st = checkpoint_open(&ck, o->model, e);

    if (st != OK)
        return st;
    take_texts(m, &ck);
    st = take_input(m, c, &ck, o, e);
    checkpoint_close(&ck);
    return st == OK ? hash_manifest(m, o->model, e) : st;
}

/* ---- a folder ---- */

static enum status read_tokenizer(struct source *m, const char *dir, struct err *e)
{
    struct path p = inside(dir, "tokenizer.json");

    if (!file_exists(p.text))
        p = inside(dir, "tokenizer.model");
    return file_exists(p.text)
               ? file_read_text(p.text, TOKENIZER_MAX, &m->tokenizer_json, &m->tokenizer_bytes, e)
               : OK;
}

static enum status hash_headers(struct source *m, const char *dir, struct err *e)
{
    struct st_model files;
    struct hash_stream *h;
    enum status st = st_open(&files, dir, e);

    if (st != OK)
        return st;
    h = hash_open();
    for (int i = 0; i < files.n; i++) {
        const struct st_tensor *t = &files.tensor[i];
        hash_add(h, t->name, strlen(t->name) + 1);
        hash_add(h, &t->begin, sizeof t->begin);
        hash_add(h, &t->end, sizeof t->end);
    }
    memcpy(m->mark, hash_close(h).s, sizeof m->mark);
    st_close(&files);
    return OK;
}

static enum status read_folder(struct source *m, struct config *c, const struct infer_options *o,
                               struct err *e)
{
    struct hf_config hf;
    enum status st = hf_config_read(&hf, o->model, e);

    if (st == OK)
        st = make_input(c, o, o->dtype ? o->dtype : "float32", e);
    if (st == OK)
        st = resolve_model(c, NULL, e);
    if (st == OK)
        st = hash_headers(m, o->model, e);
    m->eos = hf.eos_token_id;
    m->length = c->model.max_position_embeddings;
    return st == OK ? read_tokenizer(m, o->model, e) : st;
}

/* ---- both ---- */

enum status source_read(struct source *m, struct config *c, const struct infer_options *o,
                        struct err *e)
{
    enum status st;

    *m = (struct source){ .is_checkpoint = file_exists(inside(o->model, "MANIFEST.json").text) };
    if (!m->is_checkpoint && !file_exists(inside(o->model, "config.json").text))
        return err_set(e, E_FILE,
                       "%s: neither a checkpoint (a step_* folder with MANIFEST.json) nor a "
                       "Hugging Face folder (config.json and safetensors)",
                       o->model);
    if (strlen(o->model) >= CONFIG_TEXT)
        return err_set(e, E_INPUT, "%s: a path of more than %d bytes", o->model, CONFIG_TEXT - 1);
    st = m->is_checkpoint ? read_checkpoint(m, c, o, e) : read_folder(m, c, o, e);
    m->positions = c->model.max_position_embeddings;
    m->vocab_size = c->model.vocab_size;
    return st;
}

void source_free(struct source *m)
{
    mem_give(m->tokenizer_json);
    m->tokenizer_json = NULL;
}

static enum status load_checkpoint(struct run *r, const char *path, struct err *e)
{
    struct checkpoint ck;
    struct optim *o = &r->s.optim;
    enum status st = checkpoint_open(&ck, path, e);

    if (st != OK)
        return st;
    st = checkpoint_load(&ck, o->state_ops, o->state_q, o->pieces, o->npieces, e);
    checkpoint_close(&ck);
    return st;
}

enum status source_load(const struct source *m, struct run *r, const char *path, struct err *e)
{
    enum status st =
        m->is_checkpoint ? load_checkpoint(r, path, e) : import_weights(path, &r->s.optim, e);

    return agree(r->g.world, st, e);
}
