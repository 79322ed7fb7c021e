#include "cases.h"

/* ---- the table ---- */
static const struct shape runs[] = {
    { .T = 1, .K = 1 }, { .T = 3, .K = 17 }, { .T = 17, .K = 255 }, { .T = 8, .K = 129, .skew = 1 }
};
static const struct shape adds[] = {
    { .T = 1, .K = 1 },
    { .T = 2, .K = 521, .skew = 1 },
    { .T = 3, .K = 43 },
    { .T = 3, .K = 43, .flag = 1 },
    { .T = 3, .K = 43, .flag = 2 },
};
static const struct shape products[] = {
    { .T = 1, .N = 1, .K = 1 },
    { .T = 1, .N = 7, .K = 33, .pad = 3 },
    { .T = 3, .N = 5, .K = 2, .flag = 1 },
    { .T = 17, .N = 64, .K = 48, .pad = 5, .flag = 1 },
    { .T = 64, .N = 131, .K = 96 },
    { .T = 8, .N = 24, .K = 40, .pad = 8, .flag = 2 },
    { .T = 5, .N = 9, .K = 16, .skew = 1, .flag = 3 },
    { .T = 70, .N = 33, .K = 260, .pad = 1 },
    { .T = 300, .N = 80, .K = 40, .flag = 1 },
    { .T = 33, .N = 262, .K = 530, .flag = 1 }, /* several blocks */
};
static const struct shape embeddings[] = { { .T = 1, .N = 4, .K = 3 },
                                           { .T = 17, .N = 5, .K = 31 },
                                           { .T = 24, .N = 4, .K = 40, .skew = 3 },
                                           { .T = 64, .N = 8, .K = 64 } };
static const struct shape norms[] = {
    { .T = 1, .heads = 1, .K = 2 },
    { .T = 3, .heads = 1, .K = 17, .pad = 3, .flag = 1 },
    { .T = 17, .heads = 1, .K = 64, .flag = 2 },
    { .T = 17, .heads = 1, .K = 33, .pad = 2, .flag = 3 },
    { .T = 5, .heads = 1, .K = 515, .flag = 4 },
    { .T = 3, .heads = 1, .K = 128, .skew = 1, .flag = 2 },
    { .T = 17, .heads = 3, .K = 16, .pad = 7 },
    { .T = 3, .heads = 4, .K = 10, .pad = 1, .flag = 1 },
    { .T = 33, .heads = 1, .K = 2090, .flag = 3 }, /* several pieces of a row */
};
static const struct shape norm_grads[] = {
    { .T = 1, .heads = 1, .K = 2 },
    { .T = 3, .heads = 1, .K = 17, .pad = 3, .flag = 1 },
    { .T = 17, .heads = 1, .K = 64, .flag = 2 },
    { .T = 17, .heads = 1, .K = 515, .pad = 2, .flag = 3 },
    { .T = 3, .heads = 1, .K = 128, .skew = 1, .flag = 2 },
    { .T = 17, .heads = 3, .K = 16, .pad = 7 },
    { .T = 64, .heads = 2, .K = 34, .flag = 1 },
    { .T = 33, .heads = 1, .K = 2090, .flag = 2 },
};
static const struct shape ropes[] = {
    { .T = 1, .heads = 1, .K = 2, .flag = 1 },
    { .T = 3, .heads = 3, .K = 6, .pad = 5, .flag = 1 },
    { .T = 17, .heads = 2, .K = 64, .pad = 1, .flag = -1 },
    { .T = 4, .heads = 2, .K = 32, .pad = 8, .skew = 1, .flag = 1 },
    { .T = 64, .heads = 1, .K = 34, .flag = -1 },
};
static const struct shape attentions[] = {
    { .B = 1, .T = 1, .Tk = 1, .heads = 1, .G = 1, .K = 2 },
    { .B = 2, .T = 3, .Tk = 3, .heads = 2, .G = 1, .K = 4, .pad = 3 },
    { .B = 3, .T = 17, .Tk = 17, .heads = 6, .G = 3, .K = 16, .N = 5, .pad = 1 },
    { .B = 2, .T = 64, .Tk = 64, .heads = 4, .G = 4, .K = 18, .N = 23 },
    { .B = 1, .T = 150, .Tk = 150, .heads = 2, .G = 1, .K = 64 },
    { .B = 2, .T = 31, .Tk = 31, .heads = 4, .G = 2, .K = 128, .N = 11, .skew = 1 },
    { .B = 1, .T = 70, .Tk = 70, .heads = 2, .G = 1, .K = 128, .pad = 8, .flag = 1 },
    { .B = 1, .T = 261, .Tk = 261, .heads = 1, .G = 1, .K = 8, .N = 70, .flag = 1 },
    { .B = 2, .T = 16, .Tk = 24, .heads = 2, .G = 2, .K = 256, .offset = 8, .flag = 1 },
    { .B = 2,
      .T = 24,
      .Tk = 16,
      .heads = 4,
      .G = 2,
      .K = 10,
      .offset = 16,
      .N = 20,
      .pad = 2,
      .flag = 1 }, /* later piece */
    { .B = 2,
      .T = 16,
      .Tk = 24,
      .heads = 3,
      .G = 1,
      .K = 12,
      .offset = -4,
      .flag = 1 }, /* the first queries see no key */
    { .B = 1, .T = 5, .Tk = 9, .heads = 1, .G = 1, .K = 6, .offset = -20 }, /* none does */
};
static const struct shape gates[] = {
    { .T = 1, .N = 1 },
    { .T = 3, .N = 17 },
    { .T = 17, .N = 33, .flag = 1 },
    { .T = 5, .N = 64, .flag = 1 },
    { .T = 3, .N = 40, .skew = 1 },
    { .T = 33, .N = 1100, .flag = 1 },
};
static const struct shape losses[] = {
    /* N rows, K real, heads: first row, B parts */
    { .T = 1, .N = 1, .K = 1, .B = 1 },
    { .T = 3, .N = 20, .K = 17, .heads = 40, .B = 2, .flag = 1 },
    { .T = 17, .N = 131, .K = 131, .B = 3 },
    { .T = 4, .N = 40, .K = 33, .heads = 7, .B = 4, .flag = 1 },
    { .T = 3, .N = 264, .K = 264, .B = 1, .skew = 1 },
    { .T = 5, .N = 8, .K = 0, .heads = 16, .B = 1 },
};
static const struct shape flats[] = { { .N = 5, .K = 2 },
                                      { .N = 1001, .K = 33, .flag = 1 },
                                      { .N = 131, .K = 64, .flag = 1 },
                                      { .N = 514, .K = 128, .skew = 1, .flag = 1 } };
static const struct shape clips[] = { { .flag = 0 }, { .flag = 1 }, { .flag = 2 } };

#define SHAPES(a) a, COUNT_OF(a)
const struct op_row op_rows[] = {
    { "copy, upload, download, zero", case_copy, EXACT, SHAPES(runs) },
    { "convert", case_convert, EXACT, SHAPES(runs) },
    { "add", case_add, EXACT, SHAPES(adds) },
    { "linear", case_linear, SUM, SHAPES(products) },
    { "linear_grad_input", case_linear_grad_input, SUM, SHAPES(products) },
    { "linear_grad_weight", case_linear_grad_weight, SUM, SHAPES(products) },
    { "bias", case_bias, EXACT, SHAPES(products) },
    { "bias_grad", case_bias_grad, SUM, SHAPES(products) },
    { "embed", case_embed, EXACT, SHAPES(embeddings) },
    { "embed_grad", case_embed_grad, EXACT, SHAPES(embeddings) },
    { "put_rows", case_put_rows, EXACT, SHAPES(embeddings) },
    { "rmsnorm", case_rmsnorm, SUM, SHAPES(norms) },
    { "rmsnorm_grad_input", case_rmsnorm_grad_input, SUM, SHAPES(norm_grads) },
    { "rmsnorm_grad_weight", case_rmsnorm_grad_weight, SUM, SHAPES(norm_grads) },
    { "rope", case_rope, ELEMENT, SHAPES(ropes) },
    { "attention", case_attention, WEIGHTED, SHAPES(attentions) },
    { "attention_delta", case_attention_delta, SUM, SHAPES(attentions) },
    { "attention_grad", case_attention_grad, WEIGHTED, SHAPES(attentions) },
    { "swiglu", case_swiglu, ELEMENT, SHAPES(gates) },
    { "swiglu_grad", case_swiglu_grad, ELEMENT, SHAPES(gates) },
    { "softmax_stats", case_softmax_stats, EXPONENTIAL, SHAPES(losses) },
    { "softmax_loss", case_softmax_loss, EXPONENTIAL, SHAPES(losses) },
    { "softmax_grad", case_softmax_grad, EXPONENTIAL, SHAPES(losses) },
    { "square_sums", case_square_sums, SUM, SHAPES(flats) },
    { "adamw", case_adamw, ELEMENT, SHAPES(flats) },
    { "clip_factor", case_clip_factor, EXACT, SHAPES(clips) },
};
const int op_nrows = COUNT_OF(op_rows);
