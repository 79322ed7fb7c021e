/* Evaluation and generation: forward passes of a checkpoint or a Hugging Face folder. */
#ifndef INFER_INFER_H
#define INFER_INFER_H
#include "base/options.h"
#include "parallel/comm.h"

struct infer_options {
    const char *model, *out;
    const char *const *input; /* [ninputs] */
    int ninputs;
    const char *device, *dtype;   /* words of the input file; dtype NULL: the model's own */
    int64_t tp, pp, dp, threads;  /* dp 0: what is left; threads 0: by the cores */
    int64_t batch, length;        /* sequences in a pass, tokens of a sequence; 0: by the model */
    int64_t stride;               /* nll: between windows; 0: length */
    int mask;                     /* document mask; -1: as in training */
    int each_token;               /* nll: every token's too */
    int64_t max_new, top_k, seed; /* generate; top_k 0: all */
    double temperature, top_p;    /* temperature 0: the most likely */
    int no_cache;
};
/* From the command line, options.c. E_INPUT. */
typedef enum status infer_parse(struct infer_options *x, const struct options *o, struct err *e);
enum status infer_parse_logits(struct infer_options *x, const struct options *o,
                               struct err *e) LOCAL;
enum status infer_parse_nll(struct infer_options *x, const struct options *o, struct err *e) LOCAL;
enum status infer_parse_generate(struct infer_options *x, const struct options *o,
                                 struct err *e) LOCAL;
/* Reads, works, writes; one voice for each error. Every rank has the same options. */
typedef enum status infer_command(struct comm *world, const struct infer_options *o);
enum status infer_logits(struct comm *world, const struct infer_options *o) COLL(world);
enum status infer_nll(struct comm *world, const struct infer_options *o) COLL(world);
enum status infer_generate(struct comm *world, const struct infer_options *o) COLL(world);
#endif
