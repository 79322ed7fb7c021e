#include "hf/hf_config.h"

#include "base/arena.h"
#include "hf/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES = 16 << 20 };

/* What each class of transformers assumes when a key is absent. */
static const struct defaults {
    const char *type, *architecture;
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
    int64_t num_key_value_heads, head_dim; /* 0: as many as heads; hidden / heads */
    int64_t max_position_embeddings, bos_token_id, eos_token_id;
} models[] = {
    { "llama", "LlamaForCausalLM", 32000, 4096, 11008, 32, 32, 0, 0, 2048, 1, 2 },
    { "qwen2", "Qwen2ForCausalLM", 151936, 4096, 22016, 32, 32, 32, 0, 32768, -1, -1 },
    { "qwen3", "Qwen3ForCausalLM", 151936, 4096, 22016, 32, 32, 32, 128, 32768, -1, -1 },
};
enum { LLAMA = 1, QWEN2 = 2, QWEN3 = 4, ALL = 7 };

/* Keys that change the model in a way that we lack, unless they are absent, null or equal to
 * `fine`. */
static const struct feature {
    const char *key, *fine; /* "false", "0", "1", "[]", text, or NULL: only null */
    int models;
} features[] = {
    { "quantization_config", NULL, ALL },
    { "auto_map", NULL, ALL },
    { "mlp_bias", "false", QWEN2 | QWEN3 },
    { "use_sliding_window", "false", ALL },
    { "partial_rotary_factor", "1", ALL },
    { "rope_interleaved", "false", ALL },
    { "no_rope_layers", "[]", ALL },
    { "use_mrope", "false", ALL },
    { "dual_chunk_attention_config", NULL, ALL },
    { "attention_dropout", "0", ALL },
    { "hidden_dropout", "0", ALL },
    { "resid_pdrop", "0", ALL },
    { "embd_pdrop", "0", ALL },
    { "is_encoder_decoder", "false", ALL },
    { "add_cross_attention", "false", ALL },
    { "num_experts", "0", ALL },
    { "num_local_experts", "0", ALL },
    { "embedding_multiplier", "1", ALL },
    { "residual_multiplier", "1", ALL },
    { "attention_multiplier", NULL, ALL },
    { "logits_scaling", "1", ALL },
    { "query_pre_attn_scalar", NULL, ALL },
    { "attn_logit_softcapping", NULL, ALL },
    { "final_logit_softcapping", NULL, ALL },
    { "clip_qkv", NULL, ALL },
    { "use_qk_norm", "false", ALL },
    { "qk_layernorm", "false", ALL },
    { "text_config", NULL, ALL },
    { "vision_config", NULL, ALL },
};

struct reader {
    const char *path;
    const json_t *root;
    struct err *e;
    enum status st;
};

/* "PATH: key = value: why" */
static void refuse(struct reader *r, const char *key, const json_t *value, const char *why)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    r->st = err_set(r->e, E_FILE, "%s: %s%s%.80s: %s", r->path, key, text ? " = " : "",
                    text ? text : "", why);
    free(text);
}

static const json_t *find(const json_t *object, const char *key)
{
    const json_t *j = json_object_get(object, key);

    return json_is_null(j) ? NULL : j;
}

static int same(const json_t *j, const char *fine)
{
    if (!fine)
        return 0;
    if (json_is_boolean(j))
        return strcmp(fine, json_is_true(j) ? "true" : "false") == 0;
    if (json_is_number(j))
        return fine[0] >= '0' && fine[0] <= '9' && json_number_value(j) == fine[0] - '0';
    if (json_is_array(j))
        return strcmp(fine, "[]") == 0 && json_array_size(j) == 0;
    return 0;
}

static void take_int(struct reader *r, const json_t *o, const char *key, int64_t lo, int64_t *v)
{
    const json_t *j = find(o, key);

    if (!j || r->st != OK)
        return;
    if (!json_is_integer(j) || json_integer_value(j) < lo || json_integer_value(j) > INT32_MAX)
        refuse(r, key, j,
               lo > 0 ? "a whole number from 1 to 2147483647 is needed"
                      : "a whole number from 0 to 2147483647 is needed");
    else
        *v = json_integer_value(j);
}

static void take_real(struct reader *r, const json_t *o, const char *key, double *v)
{
    const json_t *j = find(o, key);

    if (!j || r->st != OK)
        return;
    if (!json_is_number(j) || !(json_number_value(j) >= 0) || !isfinite(json_number_value(j)))
        refuse(r, key, j, "a number from 0 is needed");
    else
        *v = json_number_value(j);
}

/* A list counts as its first. */
static void take_token(struct reader *r, const char *key, int64_t *v)
{
    const json_t *j = json_object_get(r->root, key),
                 *one = json_is_array(j) ? json_array_get(j, 0) : j;

    if (!j || r->st != OK)
        return;
    if (json_is_null(one) || !one || (json_is_integer(one) && json_integer_value(one) == -1))
        *v = -1;
    else if (!json_is_integer(one) || json_integer_value(one) < 0 ||
             json_integer_value(one) > INT32_MAX)
        refuse(r, key, j, "a token id is needed");
    else
        *v = json_integer_value(one);
}

/* ---- rotary embedding ---- */

struct rope {
    int given;
    char type[16];
    double theta, factor, low, high, original; /* theta 0: not given */
};

static const char *const rope_keys[] = { "rope_type",
                                         "type",
                                         "rope_theta",
                                         "factor",
                                         "low_freq_factor",
                                         "high_freq_factor",
                                         "original_max_position_embeddings",
                                         "partial_rotary_factor" };

static void check_rope_keys(struct reader *r, const char *key, const json_t *j)
{
    const char *name;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)j, name, value)
    {
        int known = 0;

        for (int i = 0; i < COUNT_OF(rope_keys); i++)
            known |= strcmp(name, rope_keys[i]) == 0;
        if ((!known && !json_is_null(value)) ||
            (strcmp(name, "partial_rotary_factor") == 0 && !same(value, "1"))) {
            char where[128];

            snprintf(where, sizeof where, "%s.%.80s", key, name);
            refuse(r, where, value, "this rotary setting is not supported");
            return;
        }
    }
}

/* The object under `key`: rope_scaling of v4 or rope_parameters of v5. */
static struct rope take_rope(struct reader *r, const char *key)
{
    const json_t *j = find(r->root, key), *type;
    struct rope p = { .type = "none" };
    const char *name;

    if (!j || r->st != OK)
        return p;
    if (!json_is_object(j)) {
        refuse(r, key, j, "an object is needed");
        return p;
    }
    p.given = 1;
    type = find(j, "rope_type") ? find(j, "rope_type") : find(j, "type");
    name = type ? json_string_value(type) : "default";
    if (!name || (strcmp(name, "default") && strcmp(name, "linear") && strcmp(name, "llama3"))) {
        char where[64];

        snprintf(where, sizeof where, "%s.rope_type", key);
        refuse(r, where, type,
               "of the rotary scalings only default, linear and llama3 are supported");
        return p;
    }
    check_rope_keys(r, key, j);
    if (strcmp(name, "default"))
        snprintf(p.type, sizeof p.type, "%s", name);
    take_real(r, j, "rope_theta", &p.theta);
    take_real(r, j, "factor", &p.factor);
    take_real(r, j, "low_freq_factor", &p.low);
    take_real(r, j, "high_freq_factor", &p.high);
    take_real(r, j, "original_max_position_embeddings", &p.original);
    if (r->st == OK && strcmp(p.type, "none") &&
        (p.factor < 1 ||
         (strcmp(p.type, "llama3") == 0 && (p.low <= 0 || p.high <= p.low || p.original < 1))))
        refuse(r, key, j,
               "linear needs factor >= 1; llama3 also 0 < low_freq_factor < high_freq_factor and "
               "original_max_position_embeddings");
    return p;
}

static int ropes_agree(const struct rope *a, const struct rope *b)
{
    if (strcmp(a->type, b->type))
        return 0;
    if (strcmp(a->type, "none") == 0)
        return 1;
    return a->factor == b->factor &&
           (strcmp(a->type, "linear") == 0 ||
            (a->low == b->low && a->high == b->high && a->original == b->original));
}

static void take_ropes(struct reader *r, struct hf_config *c)
{
    struct rope v5 = take_rope(r, "rope_parameters"), v4 = take_rope(r, "rope_scaling"), *p;
    double theta = 0;

    take_real(r, r->root, "rope_theta", &theta);
    if (r->st != OK)
        return;
    p = v4.given ? &v4 : &v5;
    if (v4.given && v5.given && !ropes_agree(&v4, &v5))
        refuse(r, "rope_scaling", find(r->root, "rope_scaling"),
               "differs from rope_parameters; keep the right one");
    if (theta > 0 && v5.theta > 0 && theta != v5.theta)
        refuse(r, "rope_theta", find(r->root, "rope_theta"),
               "differs from rope_parameters.rope_theta; keep the right one");
    if (v5.theta > 0)
        theta = v5.theta;
    if (theta > 0)
        c->rope_theta = theta;
    snprintf(c->rope_type, sizeof c->rope_type, "%s", p->type);
    if (strcmp(p->type, "none") == 0)
        return;
    c->rope_factor = p->factor;
    if (strcmp(p->type, "llama3"))
        return;
    c->rope_low_freq_factor = p->low;
    c->rope_high_freq_factor = p->high;
    c->rope_original_max_position_embeddings = (int64_t)p->original;
}

/* ---- the rest ---- */

static void check_architecture(struct reader *r, const struct defaults *d)
{
    const json_t *j = find(r->root, "architectures"), *one;
    size_t i;

    if (!j)
        return;
    json_array_foreach(j, i, one) if (json_is_string(one) &&
                                      strcmp(json_string_value(one), d->architecture) == 0) return;
    if (r->st == OK) {
        char why[96];

        snprintf(why, sizeof why, "%s is needed", d->architecture);
        refuse(r, "architectures", j, why);
    }
}

static void check_features(struct reader *r, int model)
{
    const json_t *j = find(r->root, "hidden_act"), *one;
    size_t k;

    for (int i = 0; i < COUNT_OF(features) && r->st == OK; i++) {
        const struct feature *f = &features[i];
        const json_t *value = find(r->root, f->key);

        if (value && f->models & model && !same(value, f->fine))
            refuse(r, f->key, value, "this feature is not supported");
    }
    if (r->st == OK && j &&
        (!json_is_string(j) ||
         (strcmp(json_string_value(j), "silu") && strcmp(json_string_value(j), "swish"))))
        refuse(r, "hidden_act", j, "only silu is supported");
    j = find(r->root, "layer_types");
    json_array_foreach(
        j, k, one) if (r->st == OK &&
                       (!json_is_string(one) || strcmp(json_string_value(one), "full_attention")))
        refuse(r, "layer_types", one, "only full_attention is supported");
}

static void take_flag(struct reader *r, const char *key, int *v)
{
    const json_t *j = find(r->root, key);

    if (r->st == OK && j && !json_is_boolean(j))
        refuse(r, key, j, "true or false is needed");
    *v = json_is_true(j);
}

static void take_sizes(struct reader *r, struct hf_config *c, const struct defaults *d)
{
    const json_t *root = r->root;

    take_int(r, root, "vocab_size", 1, &c->vocab_size);
    take_int(r, root, "hidden_size", 1, &c->hidden_size);
    take_int(r, root, "intermediate_size", 1, &c->intermediate_size);
    take_int(r, root, "num_hidden_layers", 1, &c->num_hidden_layers);
    take_int(r, root, "num_attention_heads", 1, &c->num_attention_heads);
    c->num_key_value_heads = d->num_key_value_heads;
    if (!c->num_key_value_heads || json_is_null(json_object_get(root, "num_key_value_heads")))
        c->num_key_value_heads = c->num_attention_heads;
    take_int(r, root, "num_key_value_heads", 1, &c->num_key_value_heads);
    if (json_is_null(json_object_get(root, "head_dim")))
        c->head_dim = 0;
    take_int(r, root, "head_dim", 1, &c->head_dim);
    if (r->st == OK && !c->head_dim) {
        if (c->hidden_size % c->num_attention_heads)
            refuse(r, "hidden_size", find(root, "hidden_size"),
                   "is not a multiple of num_attention_heads, and there is no head_dim");
        c->head_dim = c->hidden_size / c->num_attention_heads;
    }
    take_int(r, root, "max_position_embeddings", 1, &c->max_position_embeddings);
    take_real(r, root, "rms_norm_eps", &c->rms_norm_eps);
    take_real(r, root, "initializer_range", &c->initializer_range);
    take_flag(r, "tie_word_embeddings", &c->tie_word_embeddings);
    if (strcmp(d->type, "qwen2"))
        take_flag(r, "attention_bias", &c->attention_bias);
    if (strcmp(d->type, "llama") == 0)
        take_flag(r, "mlp_bias", &c->mlp_bias);
    take_token(r, "bos_token_id", &c->bos_token_id);
    take_token(r, "eos_token_id", &c->eos_token_id);
}

static void read_config(struct reader *r, struct hf_config *c)
{
    const json_t *type = find(r->root, "model_type");
    const char *name = type ? json_string_value(type) : NULL;
    int m = 0;

    while (m < COUNT_OF(models) && (!name || strcmp(name, models[m].type)))
        m++;
    if (m == COUNT_OF(models)) {
        refuse(r, "model_type", type, "llama, qwen2 or qwen3 is needed");
        return;
    }
    *c = (struct hf_config){
        .vocab_size = models[m].vocab_size,
        .hidden_size = models[m].hidden_size,
        .intermediate_size = models[m].intermediate_size,
        .num_hidden_layers = models[m].num_hidden_layers,
        .num_attention_heads = models[m].num_attention_heads,
        .head_dim = models[m].head_dim,
        .max_position_embeddings = models[m].max_position_embeddings,
        .rms_norm_eps = 1e-6,
        .rope_theta = 10000,
        .initializer_range = 0.02,
        .rope_type = "none",
        .bos_token_id = models[m].bos_token_id,
        .eos_token_id = models[m].eos_token_id,
    };
    snprintf(c->model_type, sizeof c->model_type, "%s", name);
    check_architecture(r, &models[m]);
    check_features(r, 1 << m);
    take_sizes(r, c, &models[m]);
    take_ropes(r, c);
}

enum status hf_config_read(struct hf_config *c, const char *dir, struct err *e)
{
    struct json_text path = { 0 };
    struct reader r = { .e = e };
    json_t *root;

    *c = (struct hf_config){ 0 };
    json_text_add(&path, "%s/config.json", dir);
    root = json_read_file(path.s, CONFIG_BYTES, e);
    r.path = path.s;
    r.root = root;
    if (!root)
        r.st = E_FILE;
    else if (!json_is_object(root))
        r.st = err_set(e, E_FILE, "%s: not a JSON object", path.s);
    else
        read_config(&r, c);
    json_decref(root);
    mem_give(path.s);
    return r.st;
}
