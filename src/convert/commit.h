/* The last stage of `pretrain-data tokenize`: documents, in the order of the inputs, go into the
 * token file or files; how far it came is kept in a journal. */
#ifndef CONVERT_COMMIT_H
#define CONVERT_COMMIT_H
#include "convert/journal.h"
#include "convert/pool.h"

struct commit_how {
    const struct document_ids *x;
    const struct input_list *list;
    const char *out, *validation; /* NULL: no split */
    double fraction;
    int drop_duplicates;
    double journal_seconds;
    const char *options; /* what the tokens depend on, in words */
    int replace;
};

struct commit;
/* Says where it goes on, or why it does not. *from: the first batch begins there. */
enum status commit_open(struct commit **c, const struct commit_how *how, struct place *from,
                        struct err *e) LOCAL;
enum status commit_add(struct commit *c, const struct work *w, struct err *e) LOCAL;
/* The files get their names. E_INPUT: a part is empty. */
enum status commit_finish(struct commit *c, struct err *e) LOCAL;
/* c: NULL is fine. After a failure: with a journal the work is kept (*e says so), else removed. */
void commit_close(struct commit *c, enum status st, struct err *e) LOCAL;
const struct journal_point *commit_point(const struct commit *c) LOCAL;
#endif
