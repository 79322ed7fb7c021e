#include "infer/infer.h"

#include <string.h>

static enum status read_options(struct infer_options *x, const struct options *o, struct err *e)
{
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {
        { "tp", &x->tp },           { "pp", &x->pp },       { "dp", &x->dp },
        { "threads", &x->threads }, { "batch", &x->batch },
    };
    enum status st = OK;

    *x = (struct infer_options){ .model = options_operands(o)[0],
                                 .out = options_text(o, "output"),
                                 .input = options_operands(o) + 1,
                                 .ninputs = options_noperands(o) - 1,
                                 .device = options_text(o, "device"),
                                 .dtype = options_text(o, "dtype"),
                                 .tp = 1,
                                 .pp = 1,
                                 .mask = -1 };
    if (x->dtype && strcmp(x->dtype, "float64") == 0) {
        if (x->device && strcmp(x->device, "cuda") == 0)
            return err_set(e, E_INPUT, "--dtype float64 is for the CPU: leave --device out");
        x->device = "cpu";
    }
    x->device = x->device ? x->device : "auto";
    for (int i = 0; i < COUNT_OF(numbers) && st == OK; i++)
        st = options_i64(o, numbers[i].name, 1, 1 << 20, numbers[i].to, e);
    return st;
}

static enum status read_length(struct infer_options *x, const struct options *o, struct err *e)
{
    const char *mask = options_text(o, "document-mask");

    x->mask = mask ? mask[0] == 'y' : -1;
    return options_i64(o, "sequence-length", 1, 1 << 24, &x->length, e);
}

enum status infer_parse_logits(struct infer_options *x, const struct options *o, struct err *e)
{
    enum status st = read_options(x, o, e);

    return st == OK ? read_length(x, o, e) : st;
}

enum status infer_parse_nll(struct infer_options *x, const struct options *o, struct err *e)
{
    enum status st = infer_parse_logits(x, o, e);

    x->each_token = options_given(o, "each-token") > 0;
    return st == OK ? options_i64(o, "stride", 1, 1 << 24, &x->stride, e) : st;
}

static enum status check_draws(const struct infer_options *x, const struct options *o,
                               struct err *e)
{
    static const char *const draws[] = { "top-k", "top-p", "seed" };

    for (int i = 0; x->temperature == 0 && i < COUNT_OF(draws); i++)
        if (options_given(o, draws[i]))
            return err_set(e, E_INPUT, "--%s has an effect only with --temperature above 0",
                           draws[i]);
    return OK;
}

enum status infer_parse_generate(struct infer_options *x, const struct options *o, struct err *e)
{
    enum status st = read_options(x, o, e);

    x->max_new = 128;
    x->seed = 42;
    x->top_p = 1;
    x->no_cache = options_given(o, "no-cache") > 0;
    if (st == OK)
        st = options_i64(o, "max-new-tokens", 1, 1 << 24, &x->max_new, e);
    if (st == OK)
        st = options_f64(o, "temperature", 0, 1e6, &x->temperature, e);
    if (st == OK)
        st = options_i64(o, "top-k", 1, 1 << 30, &x->top_k, e);
    if (st == OK)
        st = options_f64(o, "top-p", 0, 1, &x->top_p, e);
    if (st == OK)
        st = options_i64(o, "seed", 0, INT64_MAX, &x->seed, e);
    return st == OK ? check_draws(x, o, e) : st;
}
