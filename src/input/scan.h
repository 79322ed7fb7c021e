/* Words, texts and values of a namelist: where they begin and end. */
#ifndef INPUT_SCAN_H
#define INPUT_SCAN_H
#include "input/reading.h"

struct scan {
    struct reading *r;
    const struct source *s;
    size_t at;
    int group;             /* index of the open group, -1: its contents are ignored */
    const char *name;      /* of the open group, for messages */
    size_t name_n, opened; /* where its & is */
    int muted;             /* this statement was complained about */
    int lost;              /* the end of this group may be inside an open quote, or written `end` */
    struct value *values;  /* of the statement */
    int n, room;
};

/* One complaint a statement, none inside a group that is ignored. */
#define SCAN_COMPLAIN(p, where, ...)                                       \
    do {                                                                   \
        if (!(p)->muted && (p)->group >= 0)                                \
            complaint_add((p)->r->complaints, (p)->s, where, __VA_ARGS__); \
        (p)->muted = 1;                                                    \
    } while (0)

char scan_peek(const struct scan *p) LOCAL; /* 0 at the end, or a NUL */
char scan_peek_at(const struct scan *p, size_t at) LOCAL;
int scan_at_end(const struct scan *p) LOCAL;
int scan_is_letter(char c) LOCAL;
int scan_is_separator(char c) LOCAL; /* ends a value without quotes */
int scan_opens(char c) LOCAL;        /* & or $ */
/* &end or $end, whatever follows the word. */
int scan_is_group_end(const struct scan *p, size_t at) LOCAL;
/* A name with = or (...) = or % behind it starts the next statement. */
int scan_is_statement(const struct scan *p, size_t at) LOCAL;

/* Each from at to behind it. */
size_t scan_skip_name(const struct scan *p, size_t at) LOCAL;
size_t scan_skip_line(const struct scan *p, size_t at) LOCAL;
size_t scan_skip_blank(const struct scan *p, size_t at) LOCAL; /* ends of lines and comments too */
size_t scan_skip_word(const struct scan *p, size_t at) LOCAL;

/* What no value can start with: complains and steps over it. */
void scan_stray(struct scan *p) LOCAL;
/* Values up to the next statement or the end of the group. Only commas can make nulls. Returns
 * commas seen. */
int scan_values(struct scan *p) LOCAL;
#endif
