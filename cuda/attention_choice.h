/* Which attention a run uses: our own kernels or cuDNN's. One choice per process, made at set-up:
 *
 *     attention_choice_open(q, &policy, e);
 *     attention_choice_decide(&shape, t, e);     the shape of a training micro-batch
 *     word = attention_choice_word();            for all ranks (rank 0's) and the checkpoint
 *     attention_choice_set(word, e);             on ranks that decided otherwise
 *
 * The four slots below do what ops.h says of theirs. They take cuDNN call by call where it has
 * plans and can do the call (no merge, no add, aligned memory), else, and before open, the slots of
 * cuda/slots.h. */
#ifndef CUDA_ATTENTION_CHOICE_H
#define CUDA_ATTENTION_CHOICE_H
#include "compute/ops.h"

struct attention_policy {
    const char *word;  /* "auto", "own" or "cudnn"                                          */
    int deterministic; /* auto: by a table, not by timing; gradients repeat bit by bit       */
    int whole;         /* without merge a query sees all earlier keys of its sequence: no    */
                       /* document masks, sequences not split over ranks                     */
};

/* E_INPUT: no such word. E_RESOURCE: "cudnn" where it cannot be. q must live on; its device is the
 * current one. */
enum status attention_choice_open(struct queue *q, const struct attention_policy *p,
                                  struct err *e) LOCAL;
/* Turns "auto" into "own" or "cudnn": takes seconds; without `deterministic` both are timed on the
 * device. E_RESOURCE: "cudnn" was asked for and has no plan for this shape. */
enum status attention_choice_decide(const struct attention_shape *s, enum dtype t,
                                    struct err *e) LOCAL;
/* "own" or "cudnn" from now on. */
enum status attention_choice_set(const char *word, struct err *e) LOCAL;
const char *attention_choice_word(void) LOCAL;
const char *attention_choice_reason(void) LOCAL; /* one line for the log: why */
void attention_choice_close(void) LOCAL;

/* Slots for struct ops. choice_scratch builds the plans of a shape when it first sees it. */
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
size_t choice_scratch(const struct attention_shape *s, enum dtype t, int threads) LOCAL;
#endif
