/* The inputs of the text tools: texts and files of JSON lines. */
#ifndef CONVERT_INPUTS_H
#define CONVERT_INPUTS_H
#include "base/err.h"

int input_is_jsonl(const char *path) LOCAL; /* by its name */
/* Is there a text that can be read? Its size is added to *all. */
enum status input_check(const char *path, int64_t *all, struct err *e) LOCAL;

/* All inputs as batches of sequences, read by one thread at a time. A sequence is a line of a text,
 * its newline included, or the field of a JSON line. */
struct inputs_batch {
    char *text;   /* [n + INPUTS_PAD], zeros behind n */
    int64_t *end; /* [nends] of the sequences; 0: each ends behind a newline, or at n */
    size_t n, room, nends, ends_room;
    int64_t number; /* of the batch, from 0 */
    const char *path;
    int64_t at; /* of a text: where in the file it begins */
};
enum { INPUTS_PAD = 64 };

struct inputs;
struct inputs *inputs_open(const char *const *paths, int n, const char *field) LOCAL;
/* *b is filled anew, zeroed before the first call; n = 0: there is no more. JSON lines are checked
 * and UTF-8, texts are not. */
enum status inputs_next(struct inputs *in, struct inputs_batch *b, struct err *e) LOCAL;
int64_t inputs_done(const struct inputs *in) LOCAL; /* bytes read so far */
void inputs_batch_close(struct inputs_batch *b) LOCAL;
void inputs_close(struct inputs *in) LOCAL;
#endif
