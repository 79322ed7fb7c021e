/* What the files of config.h share: our table, and texts that are also printed. */
#ifndef INPUT_CONFIG_TABLE_H
#define INPUT_CONFIG_TABLE_H
#include "input/reading.h"
#include "input/text.h"

extern const struct table config_table; /* keys.def; keys in the order of enum config_key */

/* config_parse without the rules and without warnings. */
enum status config_parse_quiet(struct config *c, const char *text, size_t n, const char *name,
                               struct err *e) LOCAL;
/* rules.def. marks, if not NULL, give places and what is bad; else the places in c. deck must
 * outlive out. */
void config_rules_run(const struct config *c, const struct table_mark *marks,
                      const struct source *deck, struct complaints *out) LOCAL;
/* The key has no effect beside the others: rules.def refuses it when given. */
int config_key_is_idle(const struct config *c, int key) LOCAL;
/* As in a deck: 'text', .true., 3, 4. */
void config_put_value(struct text *out, const struct config *c, int key) LOCAL;
const void *config_value(const struct config *c, int key) LOCAL;
/* Equal in value, whatever the literal. */
int config_same(const struct config *a, const struct config *b, int key) LOCAL;

/* From mem_take: what config_print_defaults and config_print_markdown print. */
char *config_defaults_text(void) LOCAL;
char *config_markdown_text(void) LOCAL;
#endif
