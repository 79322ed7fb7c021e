/* config.json of Hugging Face, both ways, in v4 and v5 forms. */
#ifndef HF_HF_CONFIG_H
#define HF_HF_CONFIG_H
#include "base/err.h"

struct hf_config {
    char model_type[32]; /* "llama", "qwen2", "qwen3" */
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
        num_key_value_heads, head_dim;
    int64_t max_position_embeddings;
    double rms_norm_eps, rope_theta, initializer_range;
    char rope_type[16]; /* "none", "linear", "llama3" */
    double rope_factor, rope_low_freq_factor, rope_high_freq_factor;
    int64_t rope_original_max_position_embeddings;
    int tie_word_embeddings;
    int attention_bias, mlp_bias;       /* switches of llama (both) and qwen3 (attention_bias) */
    int64_t bos_token_id, eos_token_id; /* -1: none (a list: its first) */
};
/* dir/config.json. A feature that we lack (sliding windows in use, other
 * activations, rope types, partial rotary, quantisation, ...) is refused by name: E_FILE,
 * key, value and file. Absent keys take the model type's own defaults (formats.md 2.3). */
enum status hf_config_read(struct hf_config *c, const char *dir, struct err *e) LOCAL;
/* Both RoPE forms, dtype and torch_dtype, floats written as floats; *text from mem_take. */
char *hf_config_write(const struct hf_config *c, const char *dtype) LOCAL;
char *hf_generation_config_write(const struct hf_config *c) LOCAL;
/* tokenizer_config.json for PreTrainedTokenizerFast, of a SentencePiece model for LlamaTokenizer;
 * eos text read from the tokenizer's bytes (id eos; -1: left out); NULL with e when it is not
 * there. */
char *hf_tokenizer_config_write(const char *tokenizer_json, size_t n, int64_t eos_token_id,
                                int64_t max_length, struct err *e) LOCAL;
#endif
