/* What operations take: typed memory, the shape of an attention call, constants of an update. */
#ifndef COMPUTE_OPERAND_H
#define COMPUTE_OPERAND_H
#include "base/arena.h"
#include "base/dtype.h"

struct operand {
    dptr p;
    enum dtype t;
};
#define OPERAND_NONE ((struct operand){ DPTR_NONE, F32 })
static inline struct operand operand_at(struct operand o, int64_t elements)
{
    return (struct operand){ dptr_at(o.p, elements * (int64_t)dtype_size(o.t)), o.t };
}

/* n elements of an arena. */
static inline struct operand operand_take(struct arena *a, int64_t n, enum dtype t)
{
    return (struct operand){ arena_take(a, (size_t)n * dtype_size(t)), t };
}

/* Where each token stands: all int32 [T]. place: index in its sequence (ascending and consecutive
 * within a sequence of a call); start: place of the first token of its document in this sequence;
 * position (for RoPE) = place - start. */
struct attention_shape {
    int B;             /* sequences                                             */
    int Tq, Tk;        /* query, key tokens per sequence in this call           */
    int H, G, K;       /* local query heads, key/value heads, head size         */
                       /* G divides H, K even and <= 256                        */
    int64_t ldq, ldkv; /* row strides of q (and dq), of k and v (and dk and dv) */
    int64_t ldo;       /* of o and do                                           */
    double scale;      /* 1/sqrt(K)                                             */
};                     /* q head h is at h*K and reads the k/v head g = h/(H/G) at g*K */

/* Which of a backend's attention kernels a run uses. */
struct attention_choice {
    const char *word;  /* in: "auto", or one of the backend's; out: never "auto" */
    int deterministic; /* "auto": by a table, not by timing; gradients repeat    */
    int whole;         /* without merge a query sees all earlier keys of its     */
                       /* sequence: no document masks, sequences are not split   */
    const char *why;   /* out, for the log; lives until the next choice          */
};

/* A device as its backend describes it. */
struct ops_device {
    char text[160];              /* "NVIDIA H200, sm_90, CUDA 13.0" */
    unsigned char id[16];        /* equal for ranks that share it   */
    int64_t memory, memory_free; /* bytes; free: now */
};

/* Host constants of one step; lr etc. are rounded to the master's type inside. */
struct adamw_step {
    double beta1, beta2, eps, lr;
    double decay;       /* weight *= 1 - lr*decay first; 0 for vectors */
    double correction1; /* 1 - beta1^t, t = updates done with this one */
    double correction2; /* 1 - beta2^t                                 */
};
#endif
