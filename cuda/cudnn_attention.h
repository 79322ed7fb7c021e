/* Attention by cuDNN: causal attention of whole sequences (Tq = Tk, every sequence of the call one
 * document from its first token), bfloat16 or float16, on sm_90 and sm_10x. Everything else is
 * refused with the reason in words, and the own kernels do it. Needs no cuDNN header. */
#ifndef CUDA_CUDNN_ATTENTION_H
#define CUDA_CUDNN_ATTENTION_H
#include "compute/ops.h"

struct cudnn_device; /* cuda/cudnn_plan.h */
struct cudnn_attention;

/* Layouts of ops.h. forward reads q, k, v and writes o, lse; grad reads q, k, v, o, lse, dout and
 * writes dq, dk, dv and delta, which need not be made before. */
struct attention_memory {
    dptr q, k, v, o, lse;
    dptr dout, delta, dq, dk, dv;
    dptr scratch;
};

/* What attention_choice.c reaches cuDNN by. */
struct cudnn_calls {
    struct cudnn_device *(*open)(const char *json, struct err *e);
    void (*close)(struct cudnn_device *d);
    struct cudnn_attention *(*create)(const struct cudnn_device *d, const struct attention_shape *s,
                                      enum dtype t, int deterministic, struct err *e);
    void (*free)(struct cudnn_attention *a);
    size_t (*scratch)(const struct cudnn_attention *a);
    int (*takes)(const struct cudnn_attention *a, const struct attention_memory *m);
    void (*forward)(const struct cudnn_attention *a, void *stream,
                    const struct attention_memory *m);
    void (*grad)(const struct cudnn_attention *a, void *stream, const struct attention_memory *m);
};
/* NULL: built without cuDNN (cuda/cudnn_absent.c) */
const struct cudnn_calls *cudnn_calls(void) LOCAL;

/* Builds the plans, seconds. NULL if cuDNN cannot do it: e says why. deterministic: gradients
 * repeat bit by bit. The device must outlive it. */
struct cudnn_attention *cudnn_attention_create(const struct cudnn_device *d,
                                               const struct attention_shape *s, enum dtype t,
                                               int deterministic, struct err *e) LOCAL;
void cudnn_attention_free(struct cudnn_attention *a) LOCAL; /* NULL is fine */
/* Bytes at attention_memory.scratch that both directions need. */
size_t cudnn_attention_scratch(const struct cudnn_attention *a) LOCAL;
/* Whether all given addresses are aligned as the plans want: 16 bytes, statistics 4. */
int cudnn_attention_takes(const struct cudnn_attention *a, const struct attention_memory *m) LOCAL;
/* Queued on a cudaStream_t; allocate no device memory. Die with E_PEER. */
void cudnn_attention_forward(const struct cudnn_attention *a, void *stream,
                             const struct attention_memory *m) LOCAL;
void cudnn_attention_grad(const struct cudnn_attention *a, void *stream,
                          const struct attention_memory *m) LOCAL;
/* "2 sequences, 8 of 32 heads a call; scratch 512 MiB": for tests and the log. */
void cudnn_attention_describe(const struct cudnn_attention *a, char *text, size_t bytes) LOCAL;
#endif
