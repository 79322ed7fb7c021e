/* Which attention a run uses: our own kernels ("own") or cuDNN's ("cudnn"). One choice per process;
 * the slots below do what ops.h says of theirs. They take cuDNN call by call where it has plans and
 * can do the call (no merge, no add, aligned memory), else, and before a choice, cuda/slots.h's. */
#ifndef CUDA_ATTENTION_CHOICE_H
#define CUDA_ATTENTION_CHOICE_H
#include "compute/ops.h"

/* q's device is the current one, q lives on until choice_forget. "auto" without `deterministic`
 * times both on the device. */
enum status choice_attention_choose(struct queue *q, struct attention_choice *c,
                                    const struct attention_shape *s, enum dtype t,
                                    struct err *e) LOCAL;
void choice_forget(const struct queue *q) LOCAL; /* nothing if the choice is another queue's */
/* Builds the plans of a shape when it first sees it. */
size_t choice_scratch(const struct attention_shape *s, enum dtype t, int threads) LOCAL;

void choice_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                      struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                      const struct attention_shape *s, int merge, dptr scratch) LOCAL;
/* Where cuDNN will make the gradient it makes delta too: this only notes o for choice_grad. */
void choice_delta(struct queue *q, struct operand delta, struct operand o, struct operand dout,
                  const struct attention_shape *s) LOCAL;
void choice_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                 struct operand dout, struct operand qq, struct operand k, struct operand v,
                 struct operand lse, struct operand delta, dptr qplace, dptr qstart, dptr kplace,
                 const struct attention_shape *s, int add, dptr scratch) LOCAL;
#endif
