/* The training data as one stream of samples: sources, interleaved by weight, in stages. A pure
 * function of what mixture_open() was given and the sample's number. */
#ifndef DATA_MIXTURE_H
#define DATA_MIXTURE_H
#include "data/interleave.h"
#include "data/sampler.h"

enum { MIXTURE_NAME = 64 };

struct mixture_source {      /* what the caller says of one */
    char name[MIXTURE_NAME]; /* "": the only one. Order and place of its samples belong to the name
                              */
    const char *const *paths;
    int npaths;
    struct tokens_stated stated;
};
struct mixture_stage {
    int64_t first;        /* number of its first sample; of the first stage 0 */
    int64_t S;            /* sequence length */
    const double *weight; /* [nsources], in the order of the sources */
};

struct mixture_part {   /* a source in a stage */
    struct corpus view; /* its files in samples of the stage's S */
    int units;          /* of INTERLEAVE_UNIT */
    int64_t begin;      /* which of its samples is the stage's first, epochs counted through */
};
struct mixture { /* sources in the order of their names, so that the input's order means nothing */
    uint64_t seed;
    int shuffle;
    int nsources, nstages;
    struct mixture_name {
        char text[MIXTURE_NAME];
        int given; /* place in the caller's list */
        uint64_t key;
    } name[INTERLEAVE_SOURCES];
    struct corpus *source; /* [nsources]; in samples of one token */
    struct mixture_span {
        int64_t first, S;
        struct interleave order;
        struct mixture_part *part; /* [nsources] */
    } * stage;                     /* [nstages] */
};
/* Opens all files. A source goes on where the stage before left it: after as many tokens as its
 * samples had, rounded up to a whole sample of the new length. E_FILE: corpus_open's reasons;
 * E_INPUT: a weight that is too small, or sources that do not fit together. */
enum status mixture_open(struct mixture *m, const struct mixture_source *source, int nsources,
                         const struct mixture_stage *stage, int nstages, uint64_t seed, int shuffle,
                         struct err *e) LOCAL;
void mixture_close(struct mixture *m) LOCAL;

struct mixture_draw {
    int stage, source;
    const struct corpus *corpus; /* of the source, in samples of the stage's length */
    int64_t sample;              /* of it */
};
/* Sample n of the run; O(1) but for the stages before. */
struct mixture_draw mixture_draw(const struct mixture *m, int64_t n) LOCAL;
/* Epochs of a source that samples 0 .. n-1 of the run take. */
double mixture_epochs(const struct mixture *m, int source, int64_t n) LOCAL;
/* Samples of a source among samples 0 .. n-1 of the run. */
int64_t mixture_count(const struct mixture *m, int source, int64_t n) LOCAL;
#endif
