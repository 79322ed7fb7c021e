/* The rows of the op test. */
#ifndef TESTS_OPS_CASES_H
#define TESTS_OPS_CASES_H
#include "scene.h"

enum tolerance { EXACT, ELEMENT, SUM, EXPONENTIAL, WEIGHTED, TOLERANCE_N };

struct op_row {
    const char *name;
    scene_case *call;
    enum tolerance tolerance;
    const struct shape *shapes;
    int nshapes;
};
extern const struct op_row op_rows[];
extern const int op_nrows;

struct gradient_row {
    const char *name;
    scene_case *call;
    const struct shape *shapes;
    int nshapes;
};
extern const struct gradient_row gradient_rows[];
extern const int gradient_nrows;

/* cases.c */
scene_case case_copy, case_convert, case_add, case_linear, case_linear_grad_input,
    case_linear_grad_weight, case_bias, case_bias_grad, case_embed, case_embed_grad, case_put_rows,
    case_rmsnorm, case_rmsnorm_grad_input, case_rmsnorm_grad_weight, case_rope, case_attention,
    case_attention_delta, case_attention_grad;
/* cases_loss.c */
scene_case case_swiglu, case_swiglu_grad, case_softmax_stats, case_softmax_loss, case_softmax_grad,
    case_square_sums, case_adamw, case_clip_factor;

/* Places, document starts (a document begins about every `run` tokens; 0: never) of B sequences of
 * n tokens from `offset`. */
void case_places(struct scene *s, int64_t n, int64_t offset, int64_t run, dptr *place,
                 dptr *start) LOCAL;
void case_attention_shape(const struct scene *s, struct attention_shape *a) LOCAL;
dptr case_labels(struct scene *s, int64_t T, int64_t V) LOCAL;
#endif
