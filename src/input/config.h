/* The resolved input. The struct, the parser's table, --help, --print-defaults, doc/INPUT.md and
 * the comparison on resume all come from keys.def; what must hold between keys is in rules.def.
 *
 * keys.def:  GROUP(name, ONCE or MANY, "what it is")
 *            KEY(group, name, TYPE, "default", lo, hi, "unit", RESUME, "choices", "aliases",
 *                "help")
 *            END_GROUP(name, ONCE or MANY)
 * TYPE: INT int64_t | REAL double | BOOL int | TEXT char[CONFIG_TEXT]
 *       | CHOICE int (index into "a|b|c") | INTS struct config_ints | REALS struct config_reals
 *       | TEXTS struct config_texts.
 * Default of a required key: REQUIRED("example"). RESUME: FIXED | ANNOUNCED | FREE | USED (what
 * the steps made so far used of it is fixed: train/sources.h; the rest is announced). */
#ifndef INPUT_CONFIG_H
#define INPUT_CONFIG_H
#include "base/err.h"

enum {
    CONFIG_TEXT = 1024,     /* bytes of a text, with its 0                */
    CONFIG_LIST = 256,      /* integers in a list                         */
    CONFIG_TEXT_LIST = 64,  /* texts in a list                            */
    CONFIG_MANY = 32,       /* instances of a group that may be repeated  */
    CONFIG_LITERAL = 32,    /* bytes of a real as the user wrote it       */
    CONFIG_DECK = 256       /* bytes of the deck's name that are kept     */
};
struct config_ints { int n; int64_t v[CONFIG_LIST]; };
struct config_reals { int n; double v[CONFIG_LIST]; };
struct config_texts { int n; char v[CONFIG_TEXT_LIST][CONFIG_TEXT]; };

/* The order of the choices in keys.def. */
enum config_device { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };
enum config_schedule { SCHEDULE_GPIPE, SCHEDULE_1F1B, SCHEDULE_ZB_H1, SCHEDULE_INTERLEAVED };
enum config_model_type { MODEL_LLAMA, MODEL_QWEN2, MODEL_QWEN3 };
enum config_rope_scaling { ROPE_NONE, ROPE_LINEAR, ROPE_LLAMA3 };
enum config_lr { LR_CONSTANT, LR_LINEAR, LR_COSINE, LR_WSD, LR_INVERSE_SQRT };
enum config_on_error { ON_ERROR_STOP, ON_ERROR_CONTINUE };
enum config_communication { COMMUNICATION_AUTO, COMMUNICATION_NCCL, COMMUNICATION_MPI };
enum config_attention { ATTENTION_AUTO, ATTENTION_OWN, ATTENTION_CUDNN };
enum config_backend { BACKEND_AUTO, BACKEND_REFERENCE, BACKEND_CPU };
enum config_dtype { CONFIG_FLOAT32, CONFIG_FLOAT64, CONFIG_BFLOAT16, CONFIG_FLOAT16 };
enum config_offload { OFFLOAD_NONE, OFFLOAD_OPTIMIZER, OFFLOAD_ACTIVATIONS };
enum config_data_dtype { DATA_SAID, DATA_UINT16, DATA_UINT32, DATA_INT32, DATA_INT64 };
enum config_isa { ISA_AUTO, ISA_AVX512, ISA_AVX2, ISA_BASELINE };

/* struct config { struct { char name[CONFIG_TEXT]; ... } run; struct {...} train; parallel; model;
 * data; optim; checkpoint; eval; log; debug; unsigned char given[CONFIG_KEYS]; ... };
 * members are c->GROUP.KEY, ids are KEY_GROUP_NAME. */
#include "input/config_struct.inc"    /* expands keys.def */

/* Read, check types and ranges, apply --set overrides ("group.key=value", in order), then the
 * rules. Every complaint is collected: e->text holds them all (file:line:column, line, caret),
 * E_INPUT. Warnings go to warn(). */
enum status config_read(struct config *c, const char *path, char *const *sets, int nsets,
                        struct err *e) LOCAL;
enum status config_parse(struct config *c, const char *text, size_t n, const char *name,
                         char *const *sets, int nsets, struct err *e) LOCAL;
/* rules.def again, after the program filled in what it knows (init_from's config.json, the data's
 * vocabulary, dp). */
enum status config_check_rules(const struct config *c, struct err *e) LOCAL;
/* Fill in what other keys decide: run.name, num_key_value_heads, head_dim, max_position_embeddings.
 * config_parse does it unless init_from is given; then it is for the program, after it filled in
 * the shape. */
void config_resolve(struct config *c) LOCAL;
/* The longest sequence_length of all stages. */
int64_t config_longest_sequence(const struct config *c) LOCAL;
/* The text stored in a checkpoint as an input; c from the caller. A text that does not parse:
 * E_FILE. */
enum status config_read_stored(struct config *c, const char *stored, struct err *e) LOCAL;
/* In the deck or by --set. */
int config_given(const struct config *c, const char *group, const char *key) LOCAL;
/* A choice in the deck's words; and back: its number, -1 for a word that is unknown or not in this
 * build. */
struct config_word { char s[16]; };
struct config_word config_word(enum config_key key, int value) LOCAL;
int config_choice(enum config_key key, const char *word) LOCAL;
/* Complete, re-readable; from mem_take. read -> write -> read -> write is byte-identical. Reals as
 * the user wrote them, else with the digits that they need. A key that would be refused when given
 * is a comment. */
char *config_write(const struct config *c) LOCAL;
/* Compare with the text stored in a checkpoint, after the program filled in what it knows: a FIXED
 * key that differs is an error naming all of them with both values (E_INPUT); ANNOUNCED and USED
 * ones come as lines in *notes (mem_take; "" when none). A text that does not parse: E_FILE. With
 * init_from,
 * keys of &model that were not given are not compared: config_take_model brings them. */
enum status config_compare(const struct config *now, const char *stored, char **notes,
                           struct err *e) LOCAL;
/* On resume with init_from, which is not read then: keys of &model that were not given come from
 * the stored text. */
enum status config_take_model(struct config *c, const char *stored, struct err *e) LOCAL;
/* A choice of the stored text; 0 if it does not parse. */
int config_stored_choice(enum config_key key, const char *stored) LOCAL;
/* A commented deck that parses; stdout. */
void config_print_defaults(void) LOCAL;
/* NULL: all keys; else a group, KEY or GROUP.KEY. E_INPUT with a hint when there is none. */
enum status config_help(const char *key, struct err *e) LOCAL;
void config_print_markdown(void) LOCAL; /* doc/INPUT.md */
#endif
