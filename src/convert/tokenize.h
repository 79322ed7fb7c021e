/* pretrain-data tokenize: texts become one token file, or two when a share is held out for
 * validation. Batches of raw bytes are encoded by threads, and by other ranks, and written in the
 * order of the inputs: the files do not depend on how many there are. */
#ifndef CONVERT_TOKENIZE_H
#define CONVERT_TOKENIZE_H
#include "convert/input_list.h"
#include "parallel/comm.h"

struct tokenize {
    const char *tokenizer; /* "bytes", or a tokenizer.json */
    const char *eod;       /* of document_ids.h */
    int specials_as_text;
    const char *const *input; /* [ninputs]: files, folders, "-" */
    int ninputs;
    enum input_format format;
    const char *field; /* of a JSON line's object */
    int replace;       /* what is not UTF-8 becomes U+FFFD */
    int drop_duplicates;
    const char *out;
    const char *validation; /* NULL: no split */
    double fraction;        /* document d is held out if floor((d+1)F) > floor(dF) */
    int64_t threads;        /* of each rank; 0: its share of the node's cores */
    double journal_seconds; /* from one entry of the journal to the next */
};
/* world NULL: this process alone. Rank 0 reads and writes. E_INPUT for what the caller chose (an
 * empty part too), E_FILE for what the files hold; then nothing is written but, after some seconds
 * of work, what the next run goes on from. With a world, rank 0 has said the error. */
enum status tokenize(struct comm *world, const struct tokenize *a, struct err *e) COLL(world);
#endif
