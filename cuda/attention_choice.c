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
    struct attention_policy policy;
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
    x->plans = the.calls->create(the.device, s, t, the.policy.deterministic, &x->refusal);
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
    if (!the.policy.whole)
        return err_set(e, E_RESOURCE,
                       "document masks and sequences split over ranks need our own attention");
    if (!the.calls)
        return err_set(e, E_RESOURCE, "this program was built without cuDNN");
    if (!the.device)
        the.device = the.calls->open(NULL, e);
    return the.device ? OK : E_RESOURCE;
}

static int is_word(const char *word)
{
    return !strcmp(word, "own") || !strcmp(word, "cudnn");
}

enum status attention_choice_open(struct queue *q, const struct attention_policy *p, struct err *e)
{
    BUG_IF(the.q);
    if (strcmp(p->word, "auto") && !is_word(p->word))
        return err_set(e, E_INPUT, "attention by '%s': say auto, own or cudnn", p->word);
    the.q = q;
    the.policy = *p;
    the.calls = cudnn_calls();
    if (!strcmp(p->word, "auto")) {
        choose(0, "not decided");
        return OK;
    }
    if (attention_choice_set(p->word, e) == OK)
        return OK;
    attention_choice_close();
    return E_RESOURCE;
}

enum status attention_choice_set(const char *word, struct err *e)
{
    if (!is_word(word))
        return err_set(e, E_INPUT, "attention by '%s': say own or cudnn", word);
    if (!strcmp(word, attention_choice_word()) && the.reason.text[0])
        return OK;
    if (!strcmp(word, "cudnn") && open_cudnn(e) != OK) {
        err_prefix(e, "attention by cuDNN is not possible");
        return E_RESOURCE;
    }
    choose(!strcmp(word, "cudnn"), "as the input says");
    return OK;
}

const char *attention_choice_word(void)
{
    return the.by_cudnn ? "cudnn" : "own";
}

const char *attention_choice_reason(void)
{
    return the.reason.text;
}

/* With `deterministic` cuDNN is taken wherever it has plans, as a timing would: its kernels use the
 * tensor cores of sm_90 and newer in a way that mma.sync does not reach. */
static void choose_by_itself(const struct attention_shape *s, enum dtype t)
{
    struct err e = { "" };
    const struct entry *x;
    struct attention_timing time;
    char text[256];

    if (open_cudnn(&e) != OK) {
        choose(0, e.text);
        return;
    }
    x = prepare(s, t);
    if (!x->plans) {
        choose(0, x->refusal.text);
        return;
    }
    if (the.policy.deterministic) {
        choose(1, "cuDNN has plans for this device and shape");
        return;
    }
    if (attention_time(&time, the.q, the.calls, x->plans, s, t, &e) != OK) {
        choose(0, e.text);
        return;
    }
    snprintf(text, sizeof text,
             "forward and gradient take %.3f ms by own kernels, %.3f ms by cuDNN", time.own,
             time.cudnn);
    choose(time.cudnn < time.own, text);
}

enum status attention_choice_decide(const struct attention_shape *s, enum dtype t, struct err *e)
{
    const struct entry *x;

    BUG_IF(!the.q);
    if (!strcmp(the.policy.word, "auto")) {
        choose_by_itself(s, t);
        return OK;
    }
    if (!the.by_cudnn)
        return OK;
    x = prepare(s, t);
    if (x->plans)
        return OK;
    return err_set(e, E_RESOURCE, "attention by cuDNN is not possible: %s", x->refusal.text);
}

void attention_choice_close(void)
{
    for (int i = 0; i < the.entries; i++) {
        if (the.entry[i].plans)
            the.calls->free(the.entry[i].plans);
    }
    if (the.device)
        the.calls->close(the.device);
    memset(&the, 0, sizeof the);
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
