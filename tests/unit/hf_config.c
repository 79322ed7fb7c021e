/* config.json of v4 and v5, its traps, refusals by name, and what we write. */
#include "hf/hf_config.h"

#include "base/arena.h"
#include "base/file.h"
#include "hf/json_text.h"
#include "tests/tap.h"

static char dir[256];

static enum status read_text(struct hf_config *c, const char *text, struct err *e)
{
    char path[512];

    snprintf(path, sizeof path, "%s/config.json", dir);
    file_write_whole(path, text, strlen(text), NULL);
    e->text[0] = 0;
    return hf_config_read(c, dir, e);
}

#define SIZES                                                                                      \
    "\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":2,\"num_attention_heads\":" \
    "4,\"vocab_size\":100"
#define LLAMA(more) "{\"model_type\":\"llama\"," SIZES more "}"
#define QWEN2(more) "{\"model_type\":\"qwen2\"," SIZES more "}"
#define QWEN3(more) "{\"model_type\":\"qwen3\"," SIZES more "}"
#define LLAMA3                                                                                  \
    "\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0," \
    "\"original_max_position_embeddings\":8192"

static const struct refusal {
    const char *text, *match;
} refusals[] = {
    { "", "JSON" },
    { "[]", "object" },
    { "{}", "model_type" },
    { "{\"model_type\":\"mistral\"}", "model_type = \"mistral\"" },
    { "{\"model_type\":7}", "model_type = 7" },
    { LLAMA(",\"hidden_size\":64"), "duplicate" },
    { LLAMA(",\"architectures\":[\"LlamaForSequenceClassification\"]"),
      "LlamaForCausalLM is needed" },
    { LLAMA(",\"attention_bias\":1"), "attention_bias = 1" },
    { QWEN3(",\"mlp_bias\":true"), "mlp_bias = true" },
    { QWEN2(",\"mlp_bias\":true"), "mlp_bias = true" },
    { LLAMA(",\"hidden_act\":\"gelu\""), "hidden_act = \"gelu\"" },
    { LLAMA(",\"quantization_config\":{\"bits\":4}"), "quantization_config" },
    { LLAMA(",\"partial_rotary_factor\":0.5"), "partial_rotary_factor = 0.5" },
    { LLAMA(",\"auto_map\":{\"AutoModel\":\"x.Y\"}"), "auto_map" },
    { LLAMA(",\"attention_dropout\":0.1"), "attention_dropout = 0.1" },
    { LLAMA(",\"num_experts\":8"), "num_experts = 8" },
    { LLAMA(",\"embedding_multiplier\":12.0"), "embedding_multiplier" },
    { QWEN2(",\"use_sliding_window\":true"), "use_sliding_window = true" },
    { QWEN3(",\"layer_types\":[\"full_attention\",\"sliding_attention\"]"),
      "layer_types = \"sliding_attention\"" },
    { LLAMA(",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0}"), "rope_type = \"yarn\"" },
    { LLAMA(",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4.0}"), "rope_type = \"dynamic\"" },
    { LLAMA(",\"rope_parameters\":{\"rope_type\":\"longrope\"}"), "rope_type = \"longrope\"" },
    { LLAMA(",\"rope_scaling\":{\"rope_type\":\"linear\"}"), "factor" },
    { LLAMA(",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2.0,\"mrope_section\":[1]}"),
      "rope_scaling.mrope_section" },
    { LLAMA(",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"}}"),
      "rope_parameters.full_attention" },
    { LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}"),
      "partial_rotary_factor = 0.5" },
    { LLAMA(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0}"), "llama3" },
    { LLAMA(",\"rope_scaling\":3"), "rope_scaling = 3" },
    { LLAMA(",\"rope_theta\":10000.0,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":"
            "500000.0}"),
      "rope_theta" },
    { LLAMA(",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2.0},\"rope_parameters\":{"
            "\"rope_type\":\"default\"}"),
      "differs" },
    { LLAMA(",\"num_key_value_heads\":0"), "num_key_value_heads = 0" },
    { LLAMA(",\"num_key_value_heads\":\"2\""), "num_key_value_heads" },
    { LLAMA(",\"head_dim\":-8"), "head_dim = -8" },
    { LLAMA(",\"max_position_embeddings\":3000000000"), "max_position_embeddings" },
    { LLAMA(",\"rms_norm_eps\":\"1e-5\""), "rms_norm_eps" },
    { LLAMA(",\"rms_norm_eps\":-1.0"), "rms_norm_eps" },
    { LLAMA(",\"tie_word_embeddings\":1"), "tie_word_embeddings = 1" },
    { LLAMA(",\"eos_token_id\":\"</s>\""), "eos_token_id" },
    { "{\"model_type\":\"llama\",\"hidden_size\":65,\"num_attention_heads\":4}",
      "hidden_size = 65" },
};

static void test_refusals(void)
{
    struct hf_config c;
    struct err e;

    for (int i = 0; i < COUNT_OF(refusals); i++) {
        enum status st = read_text(&c, refusals[i].text, &e);
        int good =
            st == E_FILE && strstr(e.text, refusals[i].match) && strstr(e.text, "config.json");

        if (!tap_ok(good, "refused: %s", refusals[i].match))
            printf("# status %d: %s\n", st, e.text);
    }
}

static void test_defaults(void)
{
    struct hf_config c;
    struct err e;

    tap_ok(read_text(&c, "{\"model_type\":\"llama\"}", &e) == OK && c.vocab_size == 32000 &&
               c.hidden_size == 4096 && c.intermediate_size == 11008 && c.num_hidden_layers == 32 &&
               c.num_attention_heads == 32 && c.num_key_value_heads == 32 && c.head_dim == 128 &&
               c.max_position_embeddings == 2048 && c.rms_norm_eps == 1e-6 &&
               c.rope_theta == 10000 && c.bos_token_id == 1 && c.eos_token_id == 2 &&
               !c.tie_word_embeddings,
           "llama's own defaults %s", e.text);
    tap_ok(read_text(&c, LLAMA(""), &e) == OK && c.num_key_value_heads == 4 && c.head_dim == 16,
           "llama: as many key/value heads as heads %s", e.text);
    tap_ok(read_text(&c, QWEN2(""), &e) == OK && c.num_key_value_heads == 32 && c.head_dim == 16 &&
               c.max_position_embeddings == 32768 && c.eos_token_id == -1,
           "qwen2: 32 key/value heads %s", e.text);
    tap_ok(read_text(&c, QWEN2(",\"num_key_value_heads\":null"), &e) == OK &&
               c.num_key_value_heads == 4,
           "qwen2: null key/value heads are as many as heads %s", e.text);
    tap_ok(read_text(&c, QWEN3(""), &e) == OK && c.head_dim == 128, "qwen3: head_dim 128 %s",
           e.text);
    tap_ok(read_text(&c, QWEN3(",\"head_dim\":null"), &e) == OK && c.head_dim == 16,
           "qwen3: null head_dim is hidden_size / heads %s", e.text);
    tap_ok(
        read_text(
            &c,
            QWEN2(",\"use_sliding_window\":false,\"sliding_window\":4096,\"max_window_layers\":2,"
                  "\"use_mrope\":false,\"layer_types\":[\"full_attention\",\"full_attention\"]"),
            &e) == OK,
        "qwen2: a window that is not used is fine %s", e.text);
    tap_ok(read_text(
               &c,
               LLAMA(",\"eos_token_id\":[7,8],\"bos_token_id\":null,\"tie_word_embeddings\":true"),
               &e) == OK &&
               c.eos_token_id == 7 && c.bos_token_id == -1 && c.tie_word_embeddings,
           "a list of end tokens counts as its first %s", e.text);
}

static void test_rope(void)
{
    struct hf_config c;
    struct err e;

    tap_ok(read_text(&c, LLAMA(",\"rope_theta\":500000,\"rope_scaling\":{" LLAMA3 "}"), &e) == OK &&
               c.rope_theta == 500000 && strcmp(c.rope_type, "llama3") == 0 && c.rope_factor == 8 &&
               c.rope_low_freq_factor == 1 && c.rope_high_freq_factor == 4 &&
               c.rope_original_max_position_embeddings == 8192,
           "v4: rope_theta and rope_scaling %s", e.text);
    tap_ok(read_text(&c, LLAMA(",\"rope_parameters\":{\"rope_theta\":500000.0," LLAMA3 "}"), &e) ==
                   OK &&
               c.rope_theta == 500000 && strcmp(c.rope_type, "llama3") == 0 && c.rope_factor == 8,
           "v5: rope_parameters %s", e.text);
    tap_ok(
        read_text(
            &c,
            LLAMA(
                ",\"rope_theta\":7,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},"
                "\"rope_parameters\":{\"rope_theta\":7.0,\"rope_type\":\"linear\",\"factor\":2.0}"),
            &e) == OK &&
            c.rope_theta == 7 && strcmp(c.rope_type, "linear") == 0 && c.rope_factor == 2,
        "both forms, old alias type %s", e.text);
    tap_ok(read_text(&c, LLAMA(",\"rope_theta\":7,\"rope_parameters\":{\"rope_type\":\"default\"}"),
                     &e) == OK &&
               c.rope_theta == 7 && strcmp(c.rope_type, "none") == 0,
           "v5 without theta takes the top level's %s", e.text);
    tap_ok(read_text(&c, LLAMA(",\"rope_scaling\":null,\"rope_parameters\":null"), &e) == OK &&
               c.rope_theta == 10000,
           "null in both places %s", e.text);
}

static const json_t *at(const json_t *j, const char *a, const char *b)
{
    return b ? json_object_get(json_object_get(j, a), b) : json_object_get(j, a);
}

static void test_write(void)
{
    static const char *const types[] = { "llama", "qwen2", "qwen3" };
    static const char *const ropes[] = { "none", "linear", "llama3" };
    struct err e = { { 0 } };
    struct hf_config c = { "",   100, 64, 96, 2, 4,  2, 24, 128, 1e-5, 500000,
                           0.02, "",  8,  1,  4, 32, 1, 0,  0,   -1,   99 },
                     back;

    for (int i = 0; i < COUNT_OF(types); i++)
        for (int k = 0; k < COUNT_OF(ropes); k++) {
            char *text, *again;
            json_t *j;

            strcpy(c.model_type, types[i]);
            strcpy(c.rope_type, ropes[k]);
            c.attention_bias = i != 1;
            c.mlp_bias = i == 0;
            c.rope_factor = k > 0 ? 8 : 0;
            c.rope_low_freq_factor = k > 1;
            c.rope_high_freq_factor = k > 1 ? 4 : 0;
            c.rope_original_max_position_embeddings = k > 1 ? 32 : 0;
            text = hf_config_write(&c, "bfloat16");
            again = read_text(&back, text, &e) == OK ? hf_config_write(&back, "bfloat16") : NULL;
            tap_ok(again && strcmp(text, again) == 0 && back.rope_factor == c.rope_factor &&
                       back.num_key_value_heads == 2 && back.eos_token_id == 99 &&
                       back.attention_bias == c.attention_bias && back.mlp_bias == c.mlp_bias,
                   "%s, rope %s: reads back the same %s", types[i], ropes[k], e.text);
            mem_give(again);
            j = json_read(text, strlen(text), "written", &e);
            tap_ok(json_is_real(at(j, "rope_theta", NULL)) &&
                       json_is_real(at(j, "rope_parameters", "rope_theta")) &&
                       (k ? json_is_real(at(j, "rope_scaling", "factor")) &&
                                json_is_real(at(j, "rope_parameters", "factor"))
                          : json_is_null(at(j, "rope_scaling", NULL))) &&
                       strcmp(json_string_value(at(j, "dtype", NULL)), "bfloat16") == 0 &&
                       strcmp(json_string_value(at(j, "torch_dtype", NULL)), "bfloat16") == 0 &&
                       json_integer_value(at(j, "head_dim", NULL)) == 24,
                   "%s, rope %s: both forms, reals as reals, both dtypes", types[i], ropes[k]);
            json_decref(j);
            mem_give(text);
        }
}

static void test_companions(void)
{
    static const char tok[] = "{\"added_tokens\":[{\"id\":2,\"content\":\"<|end|>\\n\\\"\"}],"
                              "\"model\":{\"vocab\":{\"a\":0,\"b\\\"\":1}}}";
    struct err e = { { 0 } };
    struct hf_config c = { .bos_token_id = -1, .eos_token_id = 5 };
    char *g = hf_generation_config_write(&c), *t;
    json_t *j = json_read(g, strlen(g), "written", &e);

    tap_ok(json_integer_value(at(j, "eos_token_id", NULL)) == 5 && !at(j, "bos_token_id", NULL),
           "generation_config.json %s", e.text);
    json_decref(j);
    mem_give(g);
    t = hf_tokenizer_config_write(tok, sizeof tok - 1, 2, 77, &e);
    j = t ? json_read(t, strlen(t), "written", &e) : NULL;
    tap_ok(j && strcmp(json_string_value(at(j, "eos_token", NULL)), "<|end|>\n\"") == 0 &&
               strcmp(json_string_value(at(j, "tokenizer_class", NULL)),
                      "PreTrainedTokenizerFast") == 0 &&
               json_integer_value(at(j, "model_max_length", NULL)) == 77,
           "tokenizer_config.json: an added token %s", e.text);
    json_decref(j);
    mem_give(t);
    t = hf_tokenizer_config_write(tok, sizeof tok - 1, 1, 77, &e);
    j = t ? json_read(t, strlen(t), "written", &e) : NULL;
    tap_ok(j && strcmp(json_string_value(at(j, "eos_token", NULL)), "b\"") == 0,
           "a word of the vocabulary %s", e.text);
    json_decref(j);
    mem_give(t);
    t = hf_tokenizer_config_write(tok, sizeof tok - 1, -1, 77, &e);
    tap_ok(t && !strstr(t, "eos"), "no end token: none is written");
    mem_give(t);
    tap_ok(!hf_tokenizer_config_write(tok, sizeof tok - 1, 9, 77, &e) && strstr(e.text, "id 9"),
           "an end token that is not there");
    e.text[0] = 0;
    tap_ok(!hf_tokenizer_config_write("{", 1, 9, 77, &e) && strstr(e.text, "tokenizer.json"),
           "a broken tokenizer.json");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, sizeof dir, "%.200s/pretrain-hf-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return 99;
    tap_plan(COUNT_OF(refusals) + 8 + 5 + 18 + 6);
    test_refusals();
    test_defaults();
    test_rope();
    test_write();
    test_companions();
    file_remove_tree(dir, NULL);
    return tap_done();
}
