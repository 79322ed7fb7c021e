/* The data that the input names: what to train on, and what to evaluate on. */
#ifndef TRAIN_SOURCES_H
#define TRAIN_SOURCES_H
#include "data/mixture.h"
#include "input/config.h"

struct sources {
    struct mixture train;
    struct sources_set {
        char key[sizeof "validation_loss_" + MIXTURE_NAME]; /* of its loss in metrics.jsonl */
        char name[MIXTURE_NAME];
        struct corpus corpus;
    } * validation; /* [nvalidations] */
    int nvalidations;
};

enum { SOURCES_TRAIN = 1, SOURCES_VALIDATION = 2, SOURCES_LOOK = 4 };
/* Opens these parts of what is named. E_FILE; E_INPUT: vocab_size is 0 and no
 * file says it, or document_mask where documents are not known. Ids must be below the
 * vocabulary: with SOURCES_LOOK a sample of them is looked at, which needs one rank only. */
enum status sources_open(struct sources *s, const struct config *c, int parts, struct err *e) LOCAL;
void sources_close(struct sources *s) LOCAL;
/* The parts of which files do not exist; a warning for each file. */
int sources_absent(const struct config *c) LOCAL;
/* The vocabulary of the training data, 0: no file says it; its end-of-document id, -1: none. */
int64_t sources_vocabulary(const struct sources *s) LOCAL;
int64_t sources_eod(const struct sources *s) LOCAL;
const struct tokens *sources_tokenizer(
    const struct sources *s) LOCAL; /* a file that may carry one */

/* Sequence length of update `step` (from 1); tokens of the first `steps` updates. */
int64_t sources_length(const struct config *c, int64_t step) LOCAL;
int64_t sources_tokens(const struct config *c, int64_t steps) LOCAL;

/* What identifies the data in a checkpoint: the hash of a nameless source, else NAME=HASH of each.
 * From mem_take. */
char *sources_identity(const struct sources *s) LOCAL;
/* After `steps` updates with the stored input and identity: what they used must still be there and
 * give the same samples. E_INPUT: what has changed, by name; E_FILE: the stored input is damaged.
 */
enum status sources_compare(const struct sources *s, const struct config *now, const char *stored,
                            const char *identity, int64_t steps, struct err *e) LOCAL;

/* Lines of the screen. */
void sources_say(const struct sources *s, const struct config *c) LOCAL;
#endif
