#include "train/resolve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "convert/import.h"
#include "hf/hf_config.h"
#include "parallel/grid.h"
#include "text/byte_tokenizer.h"

/* One value of config.json and its key: fills it, or must agree with what the deck gives. */
struct fill {
    const char *key;
    int64_t *i;
    int *choice;
    double *r;
    int64_t hf_i;
    double hf_r;
    int rope; /* means something from this kind of rope scaling on */
};

static enum status fill_one(struct config *c, const struct fill *f, struct err *e)
{
    static const char tail[] = "leave the key out or make them agree";
    const char *dir = c->model.init_from;
    int64_t mine = f->i ? *f->i : f->choice ? *f->choice : 0;
    int given = config_given(c, "model", f->key);

    if (f->r && given && fabs(*f->r - f->hf_r) > 1e-12 * fabs(f->hf_r))
        return err_set(e, E_INPUT,
                       "model.%s is %.10g, but config.json in init_from '%s' says %.10g: %s",
                       f->key, *f->r, dir, f->hf_r, tail);
    if (!f->r && given && mine != f->hf_i)
        return err_set(e, E_INPUT,
                       "model.%s is %" PRId64 ", but config.json in init_from '%s' says %" PRId64
                       ": %s",
                       f->key, mine, dir, f->hf_i, tail);
    if (f->i)
        *f->i = f->hf_i;
    else if (f->choice)
        *f->choice = (int)f->hf_i;
    else
        *f->r = f->hf_r;
    return OK;
}

static enum status fill_all(struct config *c, const struct fill *f, int n, int rope, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < n && st == OK; i++)
        if (rope >= f[i].rope)
            st = fill_one(c, &f[i], e);
    return st;
}

#define WHOLE(name)                                        \
    {                                                      \
        .key = #name, .i = &c->model.name, .hf_i = h->name \
    }
#define REAL(name)                                         \
    {                                                      \
        .key = #name, .r = &c->model.name, .hf_r = h->name \
    }

static enum status fill_from(struct config *c, const struct hf_config *h, struct err *e)
{
    int type = config_choice(KEY_model_model_type, h->model_type);
    int rope = config_choice(KEY_model_rope_scaling_type, h->rope_type);
    const struct fill fills[] = {
        { .key = "model_type", .choice = &c->model.model_type, .hf_i = type },
        WHOLE(vocab_size),
        WHOLE(hidden_size),
        WHOLE(intermediate_size),
        WHOLE(num_hidden_layers),
        WHOLE(num_attention_heads),
        WHOLE(num_key_value_heads),
        WHOLE(head_dim),
        WHOLE(max_position_embeddings),
        { .key = "tie_word_embeddings",
          .choice = &c->model.tie_word_embeddings,
          .hf_i = h->tie_word_embeddings },
        { .key = "attention_bias", .choice = &c->model.attention_bias, .hf_i = h->attention_bias },
        { .key = "mlp_bias", .choice = &c->model.mlp_bias, .hf_i = h->mlp_bias },
        REAL(rms_norm_eps),
        REAL(rope_theta),
        REAL(initializer_range),
        { .key = "rope_scaling_type", .choice = &c->model.rope_scaling_type, .hf_i = rope },
        { .key = "rope_scaling_factor",
          .r = &c->model.rope_scaling_factor,
          .hf_r = h->rope_factor,
          .rope = ROPE_LINEAR },
        { .key = "rope_low_freq_factor",
          .r = &c->model.rope_low_freq_factor,
          .hf_r = h->rope_low_freq_factor,
          .rope = ROPE_LLAMA3 },
        { .key = "rope_high_freq_factor",
          .r = &c->model.rope_high_freq_factor,
          .hf_r = h->rope_high_freq_factor,
          .rope = ROPE_LLAMA3 },
        { .key = "rope_original_max_position_embeddings",
          .i = &c->model.rope_original_max_position_embeddings,
          .hf_i = h->rope_original_max_position_embeddings,
          .rope = ROPE_LLAMA3 },
    };

    return fill_all(c, fills, COUNT_OF(fills), rope, e);
}

static enum status fill_model(struct config *c, struct err *e)
{
    struct hf_config h;
    enum status st = hf_config_read(&h, c->model.init_from, e);

    return st == OK ? fill_from(c, &h, e) : st;
}

enum status resolve_data(struct config *c, struct sources *plan, struct err *e)
{
    int all = SOURCES_TRAIN | SOURCES_VALIDATION | SOURCES_LOOK;
    int parts = all & ~(plan ? sources_absent(c) : 0);
    struct sources s;
    enum status st;

    if (!(parts & SOURCES_TRAIN) && c->model.vocab_size == 0) {
        c->model.vocab_size = BYTE_VOCAB;
        warn("model.vocab_size = 0 and the data is absent: the byte tokenizer's %d is assumed",
             BYTE_VOCAB);
    }
    if ((st = sources_open(&s, c, parts, e)) != OK)
        return st;
    if (c->model.vocab_size == 0)
        c->model.vocab_size = sources_vocabulary(&s);
    if (plan)
        *plan = s;
    else
        sources_close(&s);
    return OK;
}

enum status resolve_ranks(struct config *c, int ranks, struct err *e)
{
    int dp = (int)c->parallel.dp;
    enum status st = OK;

    if (ranks > 0)
        st = grid_sizes(ranks, (int)c->parallel.tp, (int)c->parallel.cp, (int)c->parallel.pp, &dp,
                        e);
    if (st != OK)
        return st;
    c->parallel.dp = dp ? dp : 1;
    return config_check_rules(c, e);
}

enum status resolve_model(struct config *c, const char *stored, struct err *e)
{
    int from_folder = c->model.init_from[0] && !stored;
    struct dims d;
    enum status st = OK;

    if (from_folder)
        st = fill_model(c, e);
    else if (stored)
        st = config_take_model(c, stored, e);
    if (st != OK)
        return st;
    config_resolve(c);
    if (stored || (st = config_check_rules(c, e)) != OK || !from_folder)
        return st;
    d = dims_of(c, 1);
    return import_check(c->model.init_from, &d, e);
}
