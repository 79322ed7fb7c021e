#include "convert/export.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/export_stream.h"
#include "hf/json_text.h"

#include <stdio.h>
#include <string.h>

/* ---- one tensor ---- */

static enum status overflow(const struct param *p, int64_t at, enum dtype to, struct err *e)
{
    char index[96] = "";
    int64_t stride = 1;

    for (int d = 1; d < p->nd; d++)
        stride *= p->global[d];
    for (int d = 0; d < p->nd; d++) {
        snprintf(index + strlen(index), sizeof index - strlen(index), "%s%lld", d ? ", " : "",
                 (long long)(at / stride));
        at %= stride;
        stride = d + 1 < p->nd ? stride / p->global[d + 1] : 1;
    }
    return err_set(e, E_NUMERIC, "%s[%s] does not fit %s: export as bfloat16 or float32", p->name,
                   index, dtype_name(to));
}

enum status export_stream(struct export *x, enum checkpoint_kind kind, const struct param *p,
                          enum dtype to, export_sink *sink, void *context, struct err *e)
{
    struct box whole = box_whole(p->nd, p->global), part[BOX_RUN_MAX];
    int64_t n = box_count(&whole), shape[3], over;
    enum dtype stored = F32;
    enum status st = OK;

    checkpoint_shape(&x->c, kind, p->name, shape, &stored);
    for (int64_t at = 0; at < n && st == OK; at += EXPORT_CHUNK) {
        int64_t m = min_i64(EXPORT_CHUNK, n - at), done = 0;
        int parts = box_of_run(&whole, at, m, part);

        for (int i = 0; i < parts && st == OK; i++) {
            st = checkpoint_read_box(&x->c, kind, p->name, &part[i],
                                     x->from + done * (int64_t)dtype_size(stored), stored, e);
            done += box_count(&part[i]);
        }
        if (st != OK)
            break;
        over = dtype_convert(x->to, to, x->from, stored, m);
        st = over >= 0 ? overflow(p, at + over, to, e) : sink(context, at, x->to, m, e);
    }
    return st;
}

/* ---- the model ---- */

static struct hf_config hf_of(const struct config *c, const struct dims *d, int64_t eod)
{
    int64_t positions = c->model.max_position_embeddings;
    struct hf_config h = {
        .vocab_size = d->V,
        .hidden_size = d->D,
        .intermediate_size = d->F,
        .num_hidden_layers = d->L,
        .num_attention_heads = d->H,
        .num_key_value_heads = d->G,
        .head_dim = d->K,
        .max_position_embeddings = positions ? positions : c->train.sequence_length,
        .rms_norm_eps = c->model.rms_norm_eps,
        .rope_theta = c->model.rope_theta,
        .initializer_range = c->model.initializer_range,
        .rope_factor = c->model.rope_scaling_factor,
        .rope_low_freq_factor = c->model.rope_low_freq_factor,
        .rope_high_freq_factor = c->model.rope_high_freq_factor,
        .rope_original_max_position_embeddings = c->model.rope_original_max_position_embeddings,
        .tie_word_embeddings = d->tied,
        .attention_bias = d->obias,
        .mlp_bias = d->mlpbias,
        .bos_token_id = -1,
        .eos_token_id = eod,
    };

    snprintf(h.model_type, sizeof h.model_type, "%s",
             config_word(KEY_model_model_type, c->model.model_type).s);
    snprintf(h.rope_type, sizeof h.rope_type, "%s",
             config_word(KEY_model_rope_scaling_type, c->model.rope_scaling_type).s);
    return h;
}

static enum status check_tensors(const struct export *x, struct err *e)
{
    for (int i = 0; i < x->ps.n; i++) {
        const struct param *p = &x->ps.p[i];
        int64_t shape[3];
        enum dtype t;
        int same = checkpoint_shape(&x->c, CHECKPOINT_WEIGHTS, p->name, shape, &t) == p->nd;

        for (int d = 0; d < p->nd && same; d++)
            same = shape[d] == p->global[d];
        if (!same)
            return err_set(
                e, E_FILE,
                "%s: %s is absent, or its shape is not the one of the input stored in it", x->c.dir,
                p->name);
    }
    return OK;
}

static enum status take_model(struct export *x, struct err *e)
{
    struct config *c = mem_take(sizeof *c);
    int64_t shape[3];
    enum dtype stored = F32;
    struct dims d;
    enum status st;

    if (!x->c.input_nml) {
        mem_give(c);
        return err_set(e, E_FILE, "%s: it holds no input_nml", x->c.dir);
    }
    st = config_parse(c, x->c.input_nml, strlen(x->c.input_nml), "input_nml of the checkpoint",
                      NULL, 0, e);
    if (st == OK) {
        d = dims_of(c, 1);
        x->hf = hf_of(c, &d, x->c.eod);
        params_build_whole(&x->ps, &d);
        st = check_tensors(x, e);
    } else {
        err_prefix(e, "%s", x->c.dir);
        st = E_FILE;
    }
    mem_give(c);
    if (st == OK)
        checkpoint_shape(&x->c, CHECKPOINT_WEIGHTS, x->ps.p[0].name, shape, &stored);
    x->dtype = x->o->dtype < 0 ? stored : (enum dtype)x->o->dtype;
    return st;
}

/* ---- names ---- */

/* out without slashes at its end, and the name to write beside. */
static enum status set_names(const struct export_options *o, char out[4096], char beside[4096],
                             struct err *e)
{
    size_t n = strlen(o->out);

    while (n > 1 && o->out[n - 1] == '/')
        n--;
    if (n == 0 || n > 3900)
        return err_set(e, E_INPUT, "%.60s: the output's path is empty or too long", o->out);
    snprintf(out, 4096, "%.*s", (int)n, o->out);
    snprintf(beside, 4096, "%.3900s.tmp-merge", out);
    return OK;
}

static enum status make_parent(const char *out, char parent[4096], struct err *e)
{
    const char *slash;

    snprintf(parent, 4096, "%s", out);
    slash = strrchr(parent, '/');
    parent[slash ? slash - parent + (slash == parent) : 0] = 0;
    if (!parent[0])
        strcpy(parent, ".");
    return file_make_dirs(parent, e);
}

/* The finished export takes its name; an earlier one goes. */
static enum status commit(const char *beside, const char *out, const char *parent, struct err *e)
{
    struct json_text old = { 0 };
    int there = file_exists(out);
    enum status st = OK;

    json_text_add(&old, "%s.old-merge", out);
    if (there && (st = file_remove_tree(old.s, e)) == OK)
        st = file_rename(out, old.s, e);
    if (st == OK) {
        st = file_rename(beside, out, e);
        if (st != OK && there)
            file_rename(old.s, out, NULL);
    }
    if (st == OK)
        st = file_sync_dir(parent, e);
    if (st == OK && there)
        st = file_remove_tree(old.s, e);
    mem_give(old.s);
    return st;
}

static enum status write_beside(struct export *x, const char *beside, struct err *e)
{
    enum status st = file_remove_tree(beside, e);

    x->from = mem_take((size_t)EXPORT_CHUNK * 8);
    x->to = mem_take((size_t)EXPORT_CHUNK * 8);
    if (st == OK)
        st = x->o->hdf5 ? export_hdf5(x, beside, e) : export_safetensors(x, beside, e);
    mem_give(x->from);
    mem_give(x->to);
    return st;
}

enum status export_model(const struct export_options *o, struct err *e)
{
    struct export x = { .o = o };
    char out[4096], beside[4096], parent[4096], step[32], count[32];
    enum status st = set_names(o, out, beside, e);

    if (st == OK && o->with_optimizer && !o->hdf5)
        st = err_set(e, E_INPUT, "the optimiser's state goes into HDF5 only: add --format hdf5");
    if (st == OK)
        st = o->hdf5 ? export_may_replace_file(out, e) : export_may_replace_folder(out, e);
    if (st != OK || (st = checkpoint_open(&x.c, o->checkpoint, e)) != OK)
        return st;
    st = take_model(&x, e);
    if (st == OK)
        st = make_parent(out, parent, e);
    if (st == OK)
        st = write_beside(&x, beside, e);
    if (st == OK)
        st = commit(beside, out, parent, e);
    if (st == OK)
        say("%s: step %s, %d tensors, %s parameters as %s", out,
            log_thousands(step, x.c.scalars.step), x.ps.n, log_thousands(count, x.ps.total_count),
            dtype_name(x.dtype));
    else
        file_remove_tree(beside, NULL);
    params_free(&x.ps);
    checkpoint_close(&x.c);
    return st;
}
