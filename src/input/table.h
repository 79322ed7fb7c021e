/* Groups and keys as rows, and what a reader of a namelist does with them: find, convert, check,
 * store. Knows nothing of our own keys: config.c brings those. */
#ifndef INPUT_TABLE_H
#define INPUT_TABLE_H
#include "input/config.h"
#include "input/value.h"

enum table_type {
    TABLE_INT,
    TABLE_REAL,
    TABLE_BOOL,
    TABLE_TEXT,
    TABLE_CHOICE,
    TABLE_INTS, /* lists from here on: their structs begin with the length */
    TABLE_REALS,
    TABLE_TEXTS
};
enum table_resume { TABLE_FIXED, TABLE_ANNOUNCED, TABLE_FREE, TABLE_USED };

/* First byte of a default: the key must be given; the rest is an example. */
#define TABLE_REQUIRED       "\001"
#define TABLE_REQUIRED_SHAPE "\002"

struct table_group {
    const char *name;
    int most;        /* 1: once; else how many instances */
    size_t stride;   /* bytes from one instance to the next */
    size_t count_at; /* int, how many were read; only if most > 1 */
    int later;       /* known, not in this build */
    const char *help;
    size_t first_at; /* the first instance */
    size_t line_at;  /* int in an instance: where it begins; 0: not kept */
};
struct table_key {
    const char *group, *name;
    enum table_type type;
    const char *def; /* as in a deck, text without its quotes */
    double lo, hi;   /* of numbers */
    const char *unit;
    enum table_resume resume;
    const char *choices; /* "a|b|!c": !c is not in this build */
    const char *aliases; /* "x y": other programs' names, for hints */
    const char *help;
    size_t at; /* in the struct, first instance of the group */
};
struct table_later {
    const char *group, *name;
};
struct table {
    const struct table_group *groups;
    int ngroups;
    const struct table_key *keys;
    int nkeys;
    const struct table_later *later;
    int nlater;
};

int table_is_list(const struct table_key *k) LOCAL;
int table_group_index(const struct table *t, const char *s, size_t n) LOCAL; /* -1: none */
const struct table_key *table_find(const struct table *t, const char *group, const char *s,
                                   size_t n) LOCAL;
int table_is_key(const struct table *t, const char *s, size_t n) LOCAL; /* in whatever group */
/* i-th choice, NULL at the end; *later: not in this build. */
const char *table_choice(const struct table_key *k, int i, int *later, char buf[CONFIG_DECK]) LOCAL;
/* "1 to 1024", "at least 0"; "" if there is no range. */
const char *table_range(const struct table_key *k, char *buf, size_t room) LOCAL;
/* The default without its mark of a required key. */
const char *table_example(const struct table_key *k) LOCAL;

/* The default to at; a required key gets its example if asked, else 0 (left as it is), "" or an
 * empty list. */
void table_set_default(const struct table_key *k, void *at, int example) LOCAL;
/* All keys of all instances of a zeroed struct. */
void table_set_defaults(const struct table *t, char *base, int examples) LOCAL;
/* Hints: "; did you mean `x`?", "; `x` belongs to &g", or "". */
struct hint {
    char s[160];
};
struct hint table_hint_group(const struct table *t, const char *s, size_t n) LOCAL;
struct hint table_hint_key(const struct table *t, const char *group, const char *s, size_t n) LOCAL;
#endif
