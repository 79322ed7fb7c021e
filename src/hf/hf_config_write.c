#include "hf/hf_config.h"

#include "base/arena.h"
#include "hf/json_text.h"
#include "text/tokenizer.h"

#include <string.h>

static const struct {
    const char *type, *architecture;
    const char *extra; /* lines that close traps of the class's defaults */
} models[] = {
    { "llama", "LlamaForCausalLM", "" },
    { "qwen2", "Qwen2ForCausalLM",
      "  \"use_sliding_window\": false,\n  \"sliding_window\": null,\n" },
    { "qwen3", "Qwen3ForCausalLM",
      "  \"use_sliding_window\": false,\n  \"sliding_window\": null,\n" },
};

static void add_int(struct json_text *t, const char *key, int64_t v)
{
    json_text_add(t, "  \"%s\": %lld,\n", key, (long long)v);
}

static void add_flag(struct json_text *t, const char *key, int v)
{
    json_text_add(t, "  \"%s\": %s,\n", key, v ? "true" : "false");
}

static void add_real(struct json_text *t, const char *indent, const char *key, double v,
                     const char *end)
{
    json_text_add(t, "%s\"%s\": ", indent, key);
    json_text_real(t, v);
    json_text_add(t, "%s", end);
}

static void add_token(struct json_text *t, const char *key, int64_t id, const char *end)
{
    if (id < 0)
        json_text_add(t, "  \"%s\": null%s", key, end);
    else
        json_text_add(t, "  \"%s\": %lld%s", key, (long long)id, end);
}

/* The members that rope_scaling and rope_parameters have in common, and the closing brace. */
static void add_scaling(struct json_text *t, const struct hf_config *c)
{
    int llama3 = strcmp(c->rope_type, "llama3") == 0;

    if (strcmp(c->rope_type, "none") == 0) {
        json_text_add(t, "    \"rope_type\": \"default\"\n  }");
        return;
    }
    json_text_add(t, "    \"rope_type\": \"%s\",\n", c->rope_type);
    add_real(t, "    ", "factor", c->rope_factor, llama3 ? ",\n" : "\n  }");
    if (!llama3)
        return;
    add_real(t, "    ", "low_freq_factor", c->rope_low_freq_factor, ",\n");
    add_real(t, "    ", "high_freq_factor", c->rope_high_freq_factor, ",\n");
    json_text_add(t, "    \"original_max_position_embeddings\": %lld\n  }",
                  (long long)c->rope_original_max_position_embeddings);
}

/* v4 reads rope_theta and rope_scaling, v5 rope_parameters: both are there and say the same. */
static void add_rope(struct json_text *t, const struct hf_config *c)
{
    add_real(t, "  ", "rope_theta", c->rope_theta, ",\n");
    if (strcmp(c->rope_type, "none") == 0) {
        json_text_add(t, "  \"rope_scaling\": null");
    } else {
        json_text_add(t, "  \"rope_scaling\": {\n");
        add_scaling(t, c);
    }
    json_text_add(t, ",\n  \"rope_parameters\": {\n");
    add_real(t, "    ", "rope_theta", c->rope_theta, ",\n");
    add_scaling(t, c);
    json_text_add(t, ",\n");
}

char *hf_config_write(const struct hf_config *c, const char *dtype)
{
    struct json_text t = { 0 };
    int m = 0;

    while (m < COUNT_OF(models) && strcmp(models[m].type, c->model_type))
        m++;
    BUG_IF(m == COUNT_OF(models));
    json_text_add(&t, "{\n  \"architectures\": [\n    \"%s\"\n  ],\n  \"model_type\": \"%s\",\n%s",
                  models[m].architecture, models[m].type, models[m].extra);
    if (strcmp(c->model_type, "qwen2"))
        add_flag(&t, "attention_bias", c->attention_bias);
    if (strcmp(c->model_type, "llama") == 0)
        add_flag(&t, "mlp_bias", c->mlp_bias);
    json_text_add(&t, "  \"attention_dropout\": 0.0,\n");
    add_token(&t, "bos_token_id", c->bos_token_id, ",\n");
    json_text_add(&t, "  \"dtype\": \"%s\",\n", dtype);
    add_token(&t, "eos_token_id", c->eos_token_id, ",\n");
    add_int(&t, "head_dim", c->head_dim);
    json_text_add(&t, "  \"hidden_act\": \"silu\",\n");
    add_int(&t, "hidden_size", c->hidden_size);
    add_real(&t, "  ", "initializer_range", c->initializer_range, ",\n");
    add_int(&t, "intermediate_size", c->intermediate_size);
    add_int(&t, "max_position_embeddings", c->max_position_embeddings);
    if (strcmp(c->model_type, "llama"))
        add_int(&t, "max_window_layers", c->num_hidden_layers);
    add_int(&t, "num_attention_heads", c->num_attention_heads);
    add_int(&t, "num_hidden_layers", c->num_hidden_layers);
    add_int(&t, "num_key_value_heads", c->num_key_value_heads);
    add_real(&t, "  ", "rms_norm_eps", c->rms_norm_eps, ",\n");
    add_rope(&t, c);
    add_flag(&t, "tie_word_embeddings", c->tie_word_embeddings);
    json_text_add(&t, "  \"torch_dtype\": \"%s\",\n  \"use_cache\": true,\n", dtype);
    json_text_add(&t, "  \"vocab_size\": %lld\n}\n", (long long)c->vocab_size);
    return t.s;
}

char *hf_generation_config_write(const struct hf_config *c)
{
    struct json_text t = { 0 };

    json_text_add(&t, "{\n  \"_from_model_config\": true");
    if (c->bos_token_id >= 0)
        json_text_add(&t, ",\n  \"bos_token_id\": %lld", (long long)c->bos_token_id);
    if (c->eos_token_id >= 0)
        json_text_add(&t, ",\n  \"eos_token_id\": %lld", (long long)c->eos_token_id);
    json_text_add(&t, "\n}\n");
    return t.s;
}

/* The text of token `id`: an added token's, or a word of the vocabulary. NULL: none. */
static const char *token_text(const json_t *root, int64_t id)
{
    const json_t *one, *value;
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    const char *key;
    size_t i;

    json_array_foreach(json_object_get(root, "added_tokens"), i, one)
    {
        value = json_object_get(one, "id");
        if (json_is_integer(value) && json_integer_value(value) == id)
            return json_string_value(json_object_get(one, "content"));
    }
    json_object_foreach(vocab, key, value)
    {
        if (json_is_integer(value) && json_integer_value(value) == id)
            return key;
    }
    return NULL;
}

static void add_text(struct json_text *t, const struct tokenizer *k, const char *key, int64_t id)
{
    size_t n = 0;
    const char *text = k && id >= 0 ? tokenizer_text(k, (uint32_t)id, &n) : NULL;

    if (!text)
        return;
    json_text_add(t, "  \"%s\": ", key);
    json_text_string(t, text, n);
    json_text_add(t, ",\n");
}

/* transformers reads the model itself, and from here what it puts round a text: as we do. */
static char *model_config_write(const char *model, size_t n, int64_t eos_token_id,
                                int64_t max_length, struct err *e)
{
    struct json_text t = { 0 };
    struct tokenizer *k;
    int64_t bos = -1;

    if (tokenizer_open(&k, model, n, e) != OK && eos_token_id >= 0)
        return NULL;
    if (k)
        bos = tokenizer_begin_of_text(k);
    json_text_add(&t, "{\n  \"add_bos_token\": %s,\n  \"add_eos_token\": false,\n",
                  bos >= 0 ? "true" : "false");
    add_text(&t, k, "bos_token", bos);
    json_text_add(&t, "  \"clean_up_tokenization_spaces\": false,\n");
    add_text(&t, k, "eos_token", eos_token_id);
    json_text_add(&t, "  \"legacy\": true,\n  \"model_max_length\": %lld,\n",
                  (long long)max_length);
    json_text_add(&t, "  \"tokenizer_class\": \"LlamaTokenizer\"\n}\n");
    tokenizer_close(k);
    return t.s;
}

char *hf_tokenizer_config_write(const char *tokenizer_json, size_t n, int64_t eos_token_id,
                                int64_t max_length, struct err *e)
{
    struct json_text t = { 0 };
    json_t *root;
    const char *eos = NULL;

    if (tokenizer_is_model(tokenizer_json, n))
        return model_config_write(tokenizer_json, n, eos_token_id, max_length, e);
    root = json_read(tokenizer_json, n, "tokenizer.json", e);
    if (!root)
        return NULL;
    if (eos_token_id >= 0)
        eos = token_text(root, eos_token_id);
    if (eos_token_id >= 0 && !eos) {
        err_set(e, E_FILE,
                "tokenizer.json: there is no token with the id %lld of the end of documents",
                (long long)eos_token_id);
        json_decref(root);
        return NULL;
    }
    json_text_add(&t, "{\n  \"clean_up_tokenization_spaces\": false,\n");
    if (eos) {
        json_text_add(&t, "  \"eos_token\": ");
        json_text_string(&t, eos, strlen(eos));
        json_text_add(&t, ",\n");
    }
    json_text_add(&t, "  \"model_max_length\": %lld,\n", (long long)max_length);
    json_text_add(&t, "  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n");
    json_decref(root);
    return t.s;
}
