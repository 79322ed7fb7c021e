/* Attention by cuDNN through the slots of attention_choice.h against the reference, and which calls
 * go where. On the emulated cuDNN it shows that the graphs mean attention; on a GPU that they are
 * computed so. */
#include "cuda/attention_choice.h"
#include "cuda/slots.h"
#include "tests/tap.h"

#include "base/arena.h"
#include "compute/choose.h"

#include <math.h>

enum { PAD = 8 }; /* elements after each row that nobody may write */

struct trial {
    int B, H, G, K, S;
    enum dtype t;
    int deterministic;
};

/* Those of many heads go over the batch in pieces; the last is for soak. */
static const struct trial trials[] = {
    { 2, 4, 4, 16, 24, BF16, 0 },       { 2, 4, 4, 16, 24, BF16, 1 },
    { 3, 6, 2, 16, 17, BF16, 0 },       { 3, 6, 2, 16, 17, F16, 1 },
    { 1, 4, 1, 64, 40, F16, 0 },        { 1, 4, 1, 64, 40, BF16, 1 },
    { 2, 32768, 16384, 8, 3, BF16, 1 }, { 2, 65536, 16384, 8, 3, BF16, 1 },
    { 2, 8, 2, 128, 512, BF16, 1 },
};

/* ---- the test has its own kernels: calls are only counted ---- */

static struct {
    int attention, delta, grad;
} own_calls;

void cuda_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                    struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                    const struct attention_shape *s, int merge, dptr scratch)
{
    (void)q, (void)o, (void)lse, (void)qq, (void)k, (void)v, (void)qplace, (void)qstart;
    (void)kplace, (void)s, (void)merge, (void)scratch;
    own_calls.attention++;
}

void cuda_attention_delta(struct queue *q, struct operand delta, struct operand o,
                          struct operand dout, const struct attention_shape *s)
{
    (void)q, (void)delta, (void)o, (void)dout, (void)s;
    own_calls.delta++;
}

void cuda_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                         struct operand dout, struct operand qq, struct operand k, struct operand v,
                         struct operand lse, struct operand delta, dptr qplace, dptr qstart,
                         dptr kplace, const struct attention_shape *s, int add, dptr scratch)
{
    (void)q, (void)dq, (void)dk, (void)dv, (void)dout, (void)qq, (void)k, (void)v, (void)lse;
    (void)delta, (void)qplace, (void)qstart, (void)kplace, (void)s, (void)add, (void)scratch;
    own_calls.grad++;
}

size_t cuda_attention_scratch(const struct attention_shape *s, enum dtype t, int threads)
{
    (void)s, (void)t, (void)threads;
    return 100;
}

/* ---- one call, on the device and by the reference ---- */

struct call {
    struct queue *q;
    struct attention_shape s;
    enum dtype t; /* of the arrays below, F32 for the reference */
    int64_t tokens;
    struct operand qkv, dqkv, o, dout, lse, delta;
    dptr scratch;
};

static void must(int ok, const char *what)
{
    if (!ok) {
        printf("Bail out! %s\n", what);
        exit(1);
    }
}

static void *device_take(size_t bytes)
{
    void *p = NULL;

    must(cudaMalloc(&p, bytes) == cudaSuccess, "no device memory");
    return p;
}

static struct operand take(int on_device, int64_t n, enum dtype t)
{
    size_t bytes = (size_t)n * dtype_size(t);

    return (struct operand){ { on_device ? device_take(bytes) : mem_take(bytes) }, t };
}

/* x: host, F32 */
static void to_device(struct operand to, const float *x, int64_t n)
{
    void *typed = mem_take((size_t)n * dtype_size(to.t));

    dtype_convert(typed, to.t, x, F32, n);
    must(cudaMemcpy(to.p.p, typed, (size_t)n * dtype_size(to.t), cudaMemcpyHostToDevice) ==
             cudaSuccess,
         "no copy to the device");
    mem_give(typed);
}

static float *from_device(struct operand from, int64_t n)
{
    void *typed = mem_take((size_t)n * dtype_size(from.t));
    float *x = mem_take((size_t)n * sizeof *x);

    must(cudaMemcpy(typed, from.p.p, (size_t)n * dtype_size(from.t), cudaMemcpyDeviceToHost) ==
             cudaSuccess,
         "no copy from the device");
    dtype_convert(x, F32, typed, from.t, n);
    mem_give(typed);
    return x;
}

static struct attention_shape shape_of(const struct trial *t)
{
    int64_t ld = (int64_t)(t->H + 2 * t->G) * t->K + PAD;

    return (struct attention_shape){ .B = t->B,
                                     .Tq = t->S,
                                     .Tk = t->S,
                                     .H = t->H,
                                     .G = t->G,
                                     .K = t->K,
                                     .ldq = ld,
                                     .ldkv = ld,
                                     .ldo = (int64_t)t->H * t->K + PAD,
                                     .scale = 1 / sqrt(t->K) };
}

static void make_call(struct call *c, const struct trial *t, int on_device)
{
    int64_t rows;

    c->s = shape_of(t);
    c->t = on_device ? t->t : F32;
    c->tokens = (int64_t)t->B * t->S;
    rows = c->tokens;
    c->qkv = take(on_device, rows * c->s.ldq, c->t);
    c->dqkv = take(on_device, rows * c->s.ldq, c->t);
    c->o = take(on_device, rows * c->s.ldo, c->t);
    c->dout = take(on_device, rows * c->s.ldo, c->t);
    c->lse = take(on_device, rows * t->H, F32);
    c->delta = take(on_device, rows * t->H, F32);
}

static void drop_call(struct call *c, int on_device)
{
    void *all[] = { c->qkv.p.p, c->dqkv.p.p,  c->o.p.p,    c->dout.p.p,
                    c->lse.p.p, c->delta.p.p, c->scratch.p };

    for (int i = 0; i < COUNT_OF(all); i++) {
        if (on_device)
            cudaFree(all[i]);
        else
            mem_give(all[i]);
    }
}

static struct operand k_of(const struct call *c, struct operand qkv)
{
    return operand_at(qkv, (int64_t)c->s.H * c->s.K);
}

static struct operand v_of(const struct call *c, struct operand qkv)
{
    return operand_at(qkv, (int64_t)(c->s.H + c->s.G) * c->s.K);
}

/* Random numbers of the type; the same in both calls. 7 in the gaps and in what is to be written.
 */
static void fill(const struct call *d, int64_t ld, struct operand to, struct operand reference,
                 uint64_t seed)
{
    int64_t n = d->tokens * ld;
    float *x = (float *)(void *)reference.p.p;
    struct operand typed = take(0, n, d->t);

    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = i % ld >= ld - PAD ? 7 : (float)((double)(seed >> 40) / (1 << 23) - 1);
    }
    dtype_convert(typed.p.p, d->t, x, F32, n);
    dtype_convert(x, F32, typed.p.p, d->t, n);
    to_device(to, x, n);
    mem_give(typed.p.p);
}

static void fill_calls(struct call *d, struct call *h)
{
    int64_t qkv = d->tokens * d->s.ldq, o = d->tokens * d->s.ldo;
    float *seven = mem_take((size_t)qkv * sizeof *seven);

    for (int64_t i = 0; i < qkv; i++)
        seven[i] = 7;
    fill(d, d->s.ldq, d->qkv, h->qkv, 1);
    fill(d, d->s.ldo, d->dout, h->dout, 2);
    to_device(d->dqkv, seven, qkv);
    to_device(d->o, seven, o);
    to_device(d->lse, seven, d->tokens * d->s.H);
    to_device(d->delta, seven, d->tokens * d->s.H);
    mem_give(seven);
}

static void run_device(struct call *c, int add)
{
    const struct attention_shape *s = &c->s;

    choice_attention(c->q, c->o, c->lse, c->qkv, k_of(c, c->qkv), v_of(c, c->qkv), DPTR_NONE,
                     DPTR_NONE, DPTR_NONE, s, 0, c->scratch);
    choice_delta(c->q, c->delta, c->o, c->dout, s);
    choice_grad(c->q, c->dqkv, k_of(c, c->dqkv), v_of(c, c->dqkv), c->dout, c->qkv, k_of(c, c->qkv),
                v_of(c, c->qkv), c->lse, c->delta, DPTR_NONE, DPTR_NONE, DPTR_NONE, s, add,
                c->scratch);
}

static void run_reference(struct call *c)
{
    const struct attention_shape *s = &c->s;
    struct operand place = take(0, c->tokens, I32), start = take(0, c->tokens, I32);
    struct err e = { "" };
    struct queue *q = NULL;
    dptr scratch = { mem_take(ops_ref.attention_scratch(s, F32, 2)) };

    must(ops_ref.queue_create(&q, 2, 0, &e) == OK, e.text);
    for (int64_t i = 0; i < c->tokens; i++)
        ((int32_t *)(void *)place.p.p)[i] = (int32_t)(i % s->Tq);
    ops_ref.attention(q, c->o, c->lse, c->qkv, k_of(c, c->qkv), v_of(c, c->qkv), place.p, start.p,
                      place.p, s, 0, scratch);
    ops_ref.attention_delta(q, c->delta, c->o, c->dout, s);
    ops_ref.attention_grad(q, c->dqkv, k_of(c, c->dqkv), v_of(c, c->dqkv), c->dout, c->qkv,
                           k_of(c, c->qkv), v_of(c, c->qkv), c->lse, c->delta, place.p, start.p,
                           place.p, s, 0, scratch);
    ops_ref.queue_free(q);
    mem_give(place.p.p);
    mem_give(start.p.p);
    mem_give(scratch.p);
}

/* ---- comparison ---- */

/* Root mean square of the difference over that of y, columns first..first+n of rows of ld. */
static double difference(const float *x, const float *y, int64_t rows, int64_t ld, int64_t first,
                         int64_t n)
{
    double off = 0, all = 0;

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = first; j < first + n; j++) {
            double a = x[i * ld + j], b = y[i * ld + j];

            off += (a - b) * (a - b);
            all += b * b;
        }
    }
    return sqrt(off / all);
}

static int gaps_kept(const float *x, int64_t rows, int64_t ld)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = ld - PAD; j < ld; j++) {
            if (x[i * ld + j] != 7)
                return 0;
        }
    }
    return 1;
}

static void compare(const struct call *d, const struct call *h, const char *name)
{
    const struct attention_shape *s = &d->s;
    float *o = from_device(d->o, d->tokens * s->ldo), *lse = from_device(d->lse, d->tokens * s->H);
    float *delta = from_device(d->delta, d->tokens * s->H);
    float *g = from_device(d->dqkv, d->tokens * s->ldq);
    const float *want = (const float *)(const void *)h->dqkv.p.p;
    int64_t q = (int64_t)s->H * s->K, kv = (int64_t)s->G * s->K;
    double limit = d->t == BF16 ? 1e-2 : 1.5e-3;
    const struct {
        const char *what;
        double off, limit;
    } results[] = {
        { "o", difference(o, (float *)(void *)h->o.p.p, d->tokens, s->ldo, 0, q), limit },
        { "lse", difference(lse, (float *)(void *)h->lse.p.p, s->H, d->tokens, 0, d->tokens),
          1e-5 },
        { "delta", difference(delta, (float *)(void *)h->delta.p.p, s->H, d->tokens, 0, d->tokens),
          limit },
        { "dq", difference(g, want, d->tokens, s->ldq, 0, q), limit },
        { "dk", difference(g, want, d->tokens, s->ldq, q, kv), limit },
        { "dv", difference(g, want, d->tokens, s->ldq, q + kv, kv), limit },
    };
    int good = 1;

    for (int i = 0; i < COUNT_OF(results); i++) {
        printf("# %s: %.2e\n", results[i].what, results[i].off);
        good &= results[i].off < results[i].limit;
    }
    tap_ok(good, "%s: as the reference", name);
    tap_ok(gaps_kept(o, d->tokens, s->ldo) && gaps_kept(g, d->tokens, s->ldq),
           "%s: nothing is written between rows", name);
    mem_give(o);
    mem_give(lse);
    mem_give(delta);
    mem_give(g);
}

static int none_by_own(void)
{
    return !own_calls.attention && !own_calls.delta && !own_calls.grad;
}

static void try_numbers(struct queue *q, const struct trial *t)
{
    struct attention_choice c = { "cudnn", t->deterministic, 1, NULL };
    struct attention_shape s = shape_of(t);
    struct call d = { .q = q }, h = { 0 };
    struct err e = { "" };
    char name[128];

    snprintf(name, sizeof name, "B %d, %d/%d heads of %d, %d tokens, %s%s", t->B, t->H, t->G, t->K,
             t->S, dtype_name(t->t), t->deterministic ? ", deterministic" : "");
    must(choice_attention_choose(q, &c, &s, t->t, &e) == OK, e.text);
    memset(&own_calls, 0, sizeof own_calls);
    make_call(&d, t, 1);
    make_call(&h, t, 0);
    d.scratch.p = device_take(choice_scratch(&s, t->t, 1));
    fill_calls(&d, &h);
    run_device(&d, 0);
    must(cudaStreamSynchronize(q->stream) == cudaSuccess, "the stream broke");
    run_reference(&h);
    compare(&d, &h, name);
    tap_ok(none_by_own(), "%s: all by cuDNN", name);
    drop_call(&d, 1);
    drop_call(&h, 0);
    choice_forget(q);
}

/* ---- which calls go where ---- */

static void try_calls(struct queue *q)
{
    const struct trial *t = &trials[0];
    struct attention_choice c = { "cudnn", 0, 1, NULL };
    struct attention_shape s = shape_of(t);
    struct call d = { .q = q }, h = { 0 };
    struct operand k, v, odd;
    struct err e = { "" };

    must(choice_attention_choose(q, &c, &s, t->t, &e) == OK, e.text);
    make_call(&d, t, 1);
    make_call(&h, t, 0);
    d.scratch.p = device_take(choice_scratch(&s, t->t, 1));
    fill_calls(&d, &h);
    k = k_of(&d, d.qkv);
    v = v_of(&d, d.qkv);
    odd = operand_at(d.qkv, 1);
    memset(&own_calls, 0, sizeof own_calls);
    run_device(&d, 1);
    tap_ok(own_calls.attention == 0 && own_calls.delta == 1 && own_calls.grad == 1,
           "a gradient that is added: delta and gradient by own kernels");
    choice_attention(q, d.o, d.lse, d.qkv, k, v, DPTR_NONE, DPTR_NONE, DPTR_NONE, &s, 1, d.scratch);
    tap_ok(own_calls.attention == 1, "a merged part: by own kernels");
    choice_attention(q, d.o, d.lse, odd, k, v, DPTR_NONE, DPTR_NONE, DPTR_NONE, &s, 0, d.scratch);
    tap_ok(own_calls.attention == 2, "memory that is not aligned: by own kernels");
    s.B = 1;
    choice_attention(q, d.o, d.lse, d.qkv, k, v, DPTR_NONE, DPTR_NONE, DPTR_NONE, &s, 0, d.scratch);
    tap_ok(own_calls.attention == 3, "a shape that was not prepared: by own kernels");
    must(cudaStreamSynchronize(q->stream) == cudaSuccess, "the stream broke");
    drop_call(&d, 1);
    drop_call(&h, 0);
    choice_forget(q);
}

/* The word and a part of the reason must be these. */
static void try_choice(struct queue *q, const char *name, struct attention_choice c, enum dtype t,
                       const char *word, const char *reason)
{
    struct attention_shape s = shape_of(&trials[0]);
    struct err e = { "" };

    must(choice_attention_choose(q, &c, &s, t, &e) == OK, e.text);
    if (!tap_ok(!strcmp(c.word, word) && strstr(c.why, reason), "%s: %s", name, word))
        printf("# %s: %s\n", c.word, c.why);
    tap_ok((choice_scratch(&s, t, 1) == cuda_attention_scratch(&s, t, 1)) == !strcmp(word, "own"),
           "%s: its scratch", name);
    choice_forget(q);
}

static void try_refusal(struct queue *q, const char *name, struct attention_choice c, enum dtype t,
                        enum status want, const char *text)
{
    struct attention_shape s = shape_of(&trials[0]);
    struct err e = { "" };

    tap_ok(choice_attention_choose(q, &c, &s, t, &e) == want && strstr(e.text, text), "%s", name);
}

static void try_choices(struct queue *q)
{
    const struct attention_choice split = { "auto", 1, 0, NULL }, fixed = { "auto", 1, 1, NULL };
    const struct attention_choice timed = { "auto", 0, 1, NULL }, by_own = { "own", 1, 1, NULL };
    const struct attention_choice both = { "cudnn", 1, 0, NULL }, always = { "cudnn", 1, 1, NULL };
    const struct attention_choice wrong = { "fast", 1, 1, NULL };

    try_choice(q, "documents", split, BF16, "own", "document masks");
    try_choice(q, "deterministic", fixed, BF16, "cudnn", "has plans");
    try_choice(q, "float32", fixed, F32, "own", "bfloat16 and float16");
    /* the test's own kernels do nothing, and so are faster */
    try_choice(q, "timed", timed, BF16, "own", " ms by cuDNN");
    try_choice(q, "asked for own", by_own, BF16, "own", "as the input says");
    try_refusal(q, "another word is refused", wrong, BF16, E_INPUT, "say auto");
    try_refusal(q, "cuDNN with documents is refused", both, BF16, E_RESOURCE, "document");
    try_refusal(q, "cuDNN with float32 is refused", always, F32, E_RESOURCE, "not float32");
    try_choice(q, "after a refusal", by_own, BF16, "own", "as the input says");
}

int main(void)
{
    struct queue q = { 0 };
    int n = 0, numbers = COUNT_OF(trials) - !tap_soak();

    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0)
        return tap_skip_all("no GPU");
    tap_plan(3 * numbers + 4 + 2 * 6 + 3);
    must(cudaStreamCreateWithFlags(&q.stream, cudaStreamNonBlocking) == cudaSuccess, "no stream");
    for (int i = 0; i < numbers; i++)
        try_numbers(&q, &trials[i]);
    try_calls(&q);
    try_choices(&q);
    cudaStreamDestroy(q.stream);
    return tap_done();
}
