#include "cuda/attention_choice.h"

#include "cuda/attention_timing.h"
#include "cuda/cudnn_attention.h"
#include "cuda/slots.h"

#include <stdio.h>
#include <string.h>

enum { SHAPES = 16 };

/* A shape that was asked for. */
struct entry {
    struct attention_shape s;
    enum dtype t;
    struct cudnn_attention *plans; /* NULL: refused */
    struct err refusal;
};

static struct choice {
    struct queue *q;
    int deterministic, whole;        /* as asked */
    const struct cudnn_calls *calls; /* NULL: none in this build */
    struct cudnn_device *device;
    int by_cudnn;
    struct err reason;
    struct entry entry[SHAPES];
    int entries;
    struct { /* between choice_delta and choice_grad */
        dptr delta, o;
    } noted;
} the;

/* ---- plans by shape ---- */

static int same_shape(const struct attention_shape *a, const struct attention_shape *b)
{
    return a->B == b->B && a->Tq == b->Tq && a->Tk == b->Tk && a->H == b->H && a->G == b->G &&
           a->K == b->K && a->ldq == b->ldq && a->ldkv == b->ldkv && a->ldo == b->ldo &&
           a->scale == b->scale;
}

static struct entry *find(const struct attention_shape *s, enum dtype t)
{
    for (int i = 0; i < the.entries; i++) {
        if (the.entry[i].t == t && same_shape(&the.entry[i].s, s))
            return &the.entry[i];
    }
    return NULL;
}

/* Plans of the shape; the first call builds them. */
static struct entry *prepare(const struct attention_shape *s, enum dtype t)
{
    struct entry *x = find(s, t);

    if (x)
        return x;
    BUG_IF(the.entries == SHAPES);
    x = &the.entry[the.entries++];
    *x = (struct entry){ .s = *s, .t = t };
    x->plans = the.calls->create(the.device, s, t, the.deterministic, &x->refusal);
    return x;
}

static const struct cudnn_attention *plans_for(const struct attention_shape *s, enum dtype t)
{
    const struct entry *x = the.by_cudnn ? find(s, t) : NULL;

    return x ? x->plans : NULL;
}

/* ---- the choice ---- */

static void choose(int by_cudnn, const char *reason)
{
    the.by_cudnn = by_cudnn;
    snprintf(the.reason.text, sizeof the.reason.text, "%s", reason);
}

/* OK, or why cuDNN cannot be used at all. */
static enum status open_cudnn(struct err *e)
{
    if (!the.whole)
        return err_set(e, E_RESOURCE,
                       "document masks and sequences split over ranks need our own attention");
    if (!the.calls)
        return err_set(e, E_RESOURCE, "this program was built without cuDNN");
    if (!the.device)
        the.device = the.calls->open(NULL, e);
    return the.device ? OK : E_RESOURCE;
}

/* Its plans for the shape, or NULL and why there are none. */
static const struct cudnn_attention *try_cudnn(const struct attention_shape *s, enum dtype t,
                                               struct err *e)
{
    const struct entry *x;

    if (open_cudnn(e) != OK)
        return NULL;
    x = prepare(s, t);
    if (!x->plans)
        err_set(e, E_RESOURCE, "%s", x->refusal.text);
    return x->plans;
}

/* With `deterministic` cuDNN is taken wherever it has plans, as a timing would: its kernels use the
 * tensor cores of sm_90 and newer in a way that mma.sync does not reach. */
static void choose_by_itself(const struct attention_shape *s, enum dtype t)
{
    struct err e = { "" };
    const struct cudnn_attention *plans = try_cudnn(s, t, &e);
    struct attention_timing time;
    char text[256];

    if (!plans) {
        choose(0, e.text);
        return;
    }
    if (the.deterministic) {
        choose(1, "it has plans for this device and shape");
        return;
    }
    if (attention_time(&time, the.q, the.calls, plans, s, t, &e) != OK) {
        choose(0, e.text);
        return;
    }
    snprintf(text, sizeof text,
             "forward and gradient take %.3f ms by own kernels, %.3f ms by cuDNN", time.own,
             time.cudnn);
    choose(time.cudnn < time.own, text);
}

void choice_forget(const struct queue *q)
{
    if (the.q != q)
        return;
    for (int i = 0; i < the.entries; i++) {
        if (the.entry[i].plans)
            the.calls->free(the.entry[i].plans);
    }
    if (the.device)
        the.calls->close(the.device);
    memset(&the, 0, sizeof the);
}

enum status choice_attention_choose(struct queue *q, struct attention_choice *c,
                                    const struct attention_shape *s, enum dtype t, struct err *e)
{
    int by_itself = !strcmp(c->word, "auto"), by_cudnn = !strcmp(c->word, "cudnn");

    if (!by_itself && !by_cudnn && strcmp(c->word, "own") != 0)
        return err_set(e, E_INPUT, "attention by '%s': say auto, own or cudnn", c->word);
    BUG_IF(the.q && the.q != q);
    choice_forget(q);
    the.q = q;
    the.deterministic = c->deterministic;
    the.whole = c->whole;
    the.calls = cudnn_calls();
    if (by_cudnn && !try_cudnn(s, t, e)) {
        err_prefix(e, "attention by cuDNN is not possible");
        choice_forget(q);
        return E_RESOURCE;
    }
    if (by_itself)
        choose_by_itself(s, t);
    else
        choose(by_cudnn, "as the input says");
    c->word = the.by_cudnn ? "cudnn" : "own";
    c->why = the.reason.text;
    return OK;
}

/* ---- slots ---- */

size_t choice_scratch(const struct attention_shape *s, enum dtype t, int threads)
{
    size_t own = cuda_attention_scratch(s, t, threads), theirs;
    const struct entry *x = the.by_cudnn ? prepare(s, t) : NULL;

    if (!x || !x->plans)
        return own;
    theirs = the.calls->scratch(x->plans);
    return own > theirs ? own : theirs;
}

void choice_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                      struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                      const struct attention_shape *s, int merge, dptr scratch)
{
    const struct cudnn_attention *plans = merge ? NULL : plans_for(s, o.t);
    struct attention_memory m = {
        .q = qq.p, .k = k.p, .v = v.p, .o = o.p, .lse = lse.p, .scratch = scratch
    };

    if (plans && the.calls->takes(plans, &m))
        the.calls->forward(plans, q->stream, &m);
    else
        cuda_attention(q, o, lse, qq, k, v, qplace, qstart, kplace, s, merge, scratch);
}

void choice_delta(struct queue *q, struct operand delta, struct operand o, struct operand dout,
                  const struct attention_shape *s)
{
    if (plans_for(s, o.t)) {
        the.noted.delta = delta.p;
        the.noted.o = o.p;
    } else {
        cuda_attention_delta(q, delta, o, dout, s);
    }
}

void choice_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                 struct operand dout, struct operand qq, struct operand k, struct operand v,
                 struct operand lse, struct operand delta, dptr qplace, dptr qstart, dptr kplace,
                 const struct attention_shape *s, int add, dptr scratch)
{
    struct operand o = { the.noted.o, dout.t };
    struct attention_memory m = { qq.p,    k.p,  v.p,  o.p,  lse.p,  dout.p,
                                  delta.p, dq.p, dk.p, dv.p, scratch };
    int noted = the.noted.delta.p && the.noted.delta.p == delta.p.p;
    const struct cudnn_attention *plans = noted && !add ? plans_for(s, dout.t) : NULL;

    if (noted)
        the.noted.delta = the.noted.o = DPTR_NONE;
    if (plans && the.calls->takes(plans, &m)) {
        the.calls->grad(plans, q->stream, &m);
        return;
    }
    if (noted)
        cuda_attention_delta(q, delta, o, dout, s);
    cuda_attention_grad(q, dq, dk, dv, dout, qq, k, v, lse, delta, qplace, qstart, kplace, s, add,
                        scratch);
}
