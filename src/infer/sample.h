/* The next token from its logits. */
#ifndef INFER_SAMPLE_H
#define INFER_SAMPLE_H
#include "base/dtype.h"

struct sample_rule {
    double temperature; /* 0: the most likely token, the lowest id of equals */
    int64_t top_k;      /* 0: all; else the k most likely               */
    double top_p;       /* then the fewest whose probabilities add to it */
    uint64_t seed;
};
struct sample_candidate {
    double p;
    int32_t id;
};
/* logits [V], F32 or F64; room [V]. A function of these, (seed, prompt, position) and nothing else.
 * -1: a logit is not a number, or none is finite. */
int32_t sample_token(const struct sample_rule *r, const void *logits, enum dtype t, int64_t V,
                     uint64_t prompt, uint64_t position, struct sample_candidate *room) LOCAL;
#endif
