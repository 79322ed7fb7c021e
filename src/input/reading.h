/* Values of a namelist into a struct, by a table: converted, checked, complained about. */
#ifndef INPUT_READING_H
#define INPUT_READING_H
#include "input/complaints.h"
#include "input/table.h"

struct table_mark { /* what is known of a key after reading */
    int given, bad; /* bad: complained about; its value means nothing */
    const struct source *source;
    size_t at;                          /* of the value; where the user wrote it last */
    unsigned char element[CONFIG_LIST]; /* of a list: 0 unknown, 1 default, 2 given */
    char literal[CONFIG_LITERAL];       /* of a real; "" if it is too long */
};
struct reading { /* of one namelist into one struct */
    const struct table *table;
    char *base;
    struct table_mark *marks; /* [nkeys] */
    int *seen;                /* [ngroups] times that a group was opened */
    struct complaints *complaints;
};
struct assignment { /* name(lo:hi) = values */
    const struct source *source;
    size_t name_at, name_n;
    int64_t lo, hi; /* 0, 0: plain; hi 0: from lo on */
    const struct value *values;
    int n;
    int bad; /* its syntax was complained about */
};

void reading_assign(struct reading *r, int group, const struct assignment *a) LOCAL;
/* A new instance of a group, from byte `at` of s on: its keys count as not given. */
void reading_open_group(struct reading *r, int group, const struct source *s, size_t at) LOCAL;
/* What can be said only when a group is complete: lists with holes. */
void reading_close_group(struct reading *r, int group) LOCAL;
#endif
