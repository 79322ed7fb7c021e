/* The operation graphs that cuDNN's attention engines recognise: causal attention of B whole
 * sequences, forward and backward. */
#ifndef CUDA_CUDNN_PATTERN_H
#define CUDA_CUDNN_PATTERN_H
#include "cuda/cudnn_plan.h"

/* Tensors by id. delta is written: rowsum(dout * o). dq_sum (F32, packed [B, H, S, K]) is scratch
 * of the variant that adds up dq by atomics. */
enum pattern_id {
    ID_Q = 1,
    ID_K,
    ID_V,
    ID_O,
    ID_LSE,
    ID_SCALE,
    ID_MINUS_INFINITY,
    ID_DOUT,
    ID_DQ,
    ID_DK,
    ID_DV,
    ID_DELTA,
    ID_DQ_SUM,
    ID_ONE
};

struct attention_pattern {
    int64_t B, H, G, S, K;  /* of one call                                             */
    int64_t ldq, ldkv, ldo; /* elements between tokens                                 */
    int64_t statistics;     /* elements between heads of lse and delta, [heads, tokens] */
    cudnnDataType_t type;   /* of q, k, v, o and their gradients                       */
    int deterministic;      /* dq by one product over stored scores, not by atomics    */
};

void pattern_forward(struct cudnn_graph *g, const struct attention_pattern *p) LOCAL;
void pattern_grad(struct cudnn_graph *g, const struct attention_pattern *p) LOCAL;
#endif
