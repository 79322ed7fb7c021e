/* Reading the parts of a tokenizer.json: objects with a fixed set of keys. Every complaint names
 * the place in the file. */
#ifndef TEXT_PART_H
#define TEXT_PART_H
#include <jansson.h>

#include "base/err.h"

struct part { /* an object of the file, and where it stands */
    const json_t *o;
    char where[200]; /* "pre_tokenizer.pretokenizers[1]" */
};

struct part part_top(const json_t *o) LOCAL;
/* The member as a part; its .o is NULL if it is absent or null. */
struct part part_member(const struct part *p, const char *key) LOCAL;
struct part part_item(const struct part *p, const char *key, size_t i) LOCAL;
/* E_FILE: not an object, or a key that is not one of the words of `keys`. */
enum status part_keys(const struct part *p, const char *keys, struct err *e) LOCAL;
/* Absent or null: *v stays. E_FILE: another type. */
enum status part_flag(const struct part *p, const char *key, int *v, struct err *e) LOCAL;
enum status part_count(const struct part *p, const char *key, int64_t lo, int64_t hi, int64_t *v,
                       struct err *e) LOCAL;
/* Absent or null: *s = NULL. The text belongs to the file. */
enum status part_text(const struct part *p, const char *key, const char **s, size_t *n,
                      struct err *e) LOCAL;
enum status part_need_text(const struct part *p, const char *key, const char **s, size_t *n,
                           struct err *e) LOCAL;
/* The member must be an array; *n its length. */
enum status part_array(const struct part *p, const char *key, size_t *n, struct err *e) LOCAL;
/* E_FILE: "WHERE: type `X` is not supported here; ...". */
enum status part_refuse(const struct part *p, const char *what, const char *known,
                        struct err *e) LOCAL;
#endif
