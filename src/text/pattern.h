/* What splits a text or is replaced in it: a literal, a class of characters, or a regular
 * expression. Read-only, shared by threads; a search needs a thread's own scratch. */
#ifndef TEXT_PATTERN_H
#define TEXT_PATTERN_H
#include "text/part.h"

enum pattern_kind {
    PATTERN_NONE,
    PATTERN_STRING,
    PATTERN_CLASS, /* one character of a class                   */
    PATTERN_WORDS, /* a run of word characters, or of others that are no spaces */
    PATTERN_REGEX
};

struct pattern {
    enum pattern_kind kind;
    char *text; /* the literal; a regular expression as the file has it */
    size_t n;
    uint8_t class;          /* PATTERN_CLASS: enum unicode_class */
    const uint8_t *classes; /* [UNICODE_POINTS], the tokenizer's */
    void *code;             /* pcre2_code */
};

struct pattern_scratch;
struct pattern_scratch *pattern_scratch_open(void) LOCAL;
void pattern_scratch_close(struct pattern_scratch *s) LOCAL;

/* {"String": ...} or {"Regex": ...} */
enum status pattern_read(struct pattern *p, const struct part *from, struct err *e) LOCAL;
enum status pattern_regex(struct pattern *p, const char *s, size_t n, const char *where,
                          struct err *e) LOCAL;
/* One of the well-known expressions: gpt2, llama3, qwen2, o200k. E_INPUT: none of them. */
enum status pattern_of_name(struct pattern *p, const char *name, const char *where,
                            struct err *e) LOCAL;
/* The name of a well-known expression, or NULL. */
const char *pattern_name(const struct pattern *p) LOCAL;
/* Does a space between two letters always begin a match, whatever is around them? */
int pattern_begins_at_space(const struct pattern *p) LOCAL;
void pattern_free(struct pattern *p) LOCAL;

/* Matches of a text one after the other; an empty match does not follow a match. */
struct pattern_search {
    const struct pattern *p;
    struct pattern_scratch *s;
    const char *text; /* valid UTF-8 */
    size_t n;
    size_t at;       /* where the search goes on */
    size_t end;      /* of the last match        */
    int any;         /* there was one            */
    size_t from, to; /* the match                */
};
/* 1: found; 0: no more; -1: the regular expression needs too much (e). */
int pattern_next(struct pattern_search *f, struct err *e) LOCAL;
#endif
