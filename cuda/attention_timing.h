/* How long attention takes on this device, by our own kernels and by cuDNN. */
#ifndef CUDA_ATTENTION_TIMING_H
#define CUDA_ATTENTION_TIMING_H
#include "cuda/cudnn_attention.h"

/* Milliseconds of forward and gradient: the shortest of some runs. */
struct attention_timing {
    double own, cudnn;
};

/* Takes and gives back device memory for one call. E_RESOURCE if there is too little. */
enum status attention_time(struct attention_timing *t, struct queue *q,
                           const struct cudnn_calls *calls, const struct cudnn_attention *plans,
                           const struct attention_shape *s, enum dtype type, struct err *e) LOCAL;
#endif
