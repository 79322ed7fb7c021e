/* How far `pretrain-data tokenize` has come, beside its output: what a later run needs to go on. */
#ifndef CONVERT_JOURNAL_H
#define CONVERT_JOURNAL_H
#include "convert/batches.h"
#include "data/tokens.h"

enum { JOURNAL_PARTS = 2 };

/* All int64_t: it is stored as a list. */
struct journal_point {
    struct place place;
    int64_t documents, kept, duplicates; /* seen, of these: written; dropped */
    int64_t blank, specials, replaced;
    int64_t dropping; /* place.inside: in a text that is dropped */
    struct tokens_mark mark[JOURNAL_PARTS];
    int64_t hashes; /* bytes of the list of hashes */
};

struct journal {
    struct hash_text tokenizer;
    char options[2048];              /* as a person reads them */
    int64_t replace;                 /* --invalid-utf8 replace */
    struct hash_text before, at;     /* of the inputs before now.place.input, and of that one */
    struct journal_point begin, now; /* where that input begins; what was written last */
};

enum status journal_write(const char *path, const struct journal *j, struct err *e) LOCAL;
enum status journal_remove(const char *path, struct err *e) LOCAL; /* absent is fine */
/* E_FILE: it is not there, or none. */
enum status journal_read(const char *path, struct journal *j, struct err *e) LOCAL;
/* Names, sizes, times of change and formats of inputs from .. to - 1. */
struct hash_text journal_inputs(const struct input_list *l, int64_t from, int64_t to) LOCAL;
/* The point of *old from which a run like *new (its tokenizer, options, replace) can go on; NULL,
 * and *why. */
const struct journal_point *journal_resume(const struct journal *old, const struct journal *new,
                                           const struct input_list *l, char why[3000]) LOCAL;
#endif
