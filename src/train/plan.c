#include "train/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "model/geometry.h"

struct plan_memory {
    double weights, gradients, optimiser, activations, scratch, total;
    double host; /* of it in host memory beside a device */
};               /* MiB */

static double mib(double bytes)
{
    return bytes / 1048576.0;
}

static struct plan_memory memory_of(const struct setup *s)
{
    struct plan_memory m = { 0 };

    for (int b = 0; b < s->params.nbuckets; b++) {
        int alias = s->optim.alias_of >= 0 && s->params.b[b].tied == 2;
        double n = (double)s->params.b[b].count;
        m.gradients += mib(n * (double)dtype_size(s->optim.type));
        m.weights += alias ? 0 : mib(n * (double)dtype_size(s->optim.weight_type));
    }
    m.optimiser = mib((double)(s->keep.peak + s->state.peak)) - m.weights - m.gradients;
    m.activations = mib((double)(s->step.peak + s->saved.peak));
    m.scratch = mib((double)s->scratch.peak);
    m.host = mib((double)setup_host_bytes(s));
    m.total = mib((double)setup_bytes(s)) + m.host;
    return m;
}

/* The setup of pipeline rank p (tp and dp rank 0: the largest share), measured. */
static enum status setup_of_stage(struct setup *s, const struct config *c, const struct grid *g,
                                  const struct ops *ops, int threads, int p, struct err *e)
{
    struct grid at = *g;
    enum status st;

    at.pp_rank = p;
    at.tp_rank = at.dp_rank = at.cp_rank = 0;
    st = setup_build(s, c, &at, ops, threads, NULL, e);
    if (st == OK)
        setup_measure(s);
    return st;
}

/* ---- the lines of the screen ---- */

struct text {
    char s[1024];
    int n;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    t->n += vsnprintf(t->s + t->n, sizeof t->s - (size_t)t->n, fmt, args);
    va_end(args);
    t->n = (int)min_i64(t->n, (int64_t)sizeof t->s - 1);
}

static const char *count_text(char *buf, size_t size, double n)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" }, { 1e3, "k" } };
    for (int i = 0; i < COUNT_OF(units); i++)
        if (n >= units[i].unit) {
            snprintf(buf, size, "%.1f %s", n / units[i].unit, units[i].name);
            return buf;
        }
    snprintf(buf, size, "%.0f", n);
    return buf;
}

static void say_model(const struct config *c, const struct dims *d)
{
    char params[32], vocab[32];

    say("model   %s, %d blocks, hidden %" PRId64 ", %d heads on %d kv of %d, ffn %" PRId64
        ", vocabulary %s%s: %s parameters",
        config_word(KEY_model_model_type, c->model.model_type).s, d->L, d->D, d->H, d->G, d->K,
        d->F, log_thousands(vocab, d->V), d->tied ? " (tied)" : "",
        count_text(params, sizeof params, (double)geometry_parameters(d)));
}

static void say_grid(const struct grid *g, int threads, int known)
{
    struct text t = { .n = 0 };

    put(&t, "grid    %d rank%s", g->ranks, g->ranks == 1 ? "" : "s");
    if (known)
        put(&t, " on %d node%s", g->nodes, g->nodes == 1 ? "" : "s");
    put(&t, " = pp %d x dp %d x tp %d", g->pp, g->dp, g->tp);
    if (known)
        put(&t, ", %d thread%s each", threads, threads == 1 ? "" : "s");
    if (known && g->node_ranks > g->cores)
        put(&t, "; %d ranks share %d core%s", g->node_ranks, g->cores, g->cores == 1 ? "" : "s");
    say("%s", t.s);
}

static void say_batch(const struct setup *s)
{
    char tokens[32];

    say("batch   %" PRId64 " sequences of %" PRId64
        " = %s tokens: %d replica%s x %d micro-batch%s of %" PRId64,
        s->GB, sources_length(s->c, 1), log_thousands(tokens, sources_tokens(s->c, 1)), s->g.dp,
        s->g.dp == 1 ? "" : "s", s->mbs, s->mbs == 1 ? "" : "es", s->B);
}

static void put_stage(struct text *t, const struct setup *s, int i, double share)
{
    int n = s->first_layer[i + 1] - s->first_layer[i];
    const char *plus = "";

    put(t, "%d: ", i);
    if (i == 0) {
        put(t, "embedding");
        plus = " + ";
    }
    if (n > 0) {
        put(t, "%s%d block%s", plus, n, n == 1 ? "" : "s");
        plus = " + ";
    }
    if (i == s->stages - 1)
        put(t, "%shead", plus);
    put(t, " (%.0f %%)   ", 100 * share);
}

static void say_stages(const struct setup *s)
{
    enum { SHOWN = 4 };
    struct text t = { .n = 0 };
    struct schedule_report r = setup_simulate(s);
    double layer, embedding, head, all;

    geometry_stage_costs(&s->d, s->S, &layer, &embedding, &head);
    all = s->d.L * layer + embedding + head;
    for (int i = 0; i < s->stages; i++) {
        double cost = (s->first_layer[i + 1] - s->first_layer[i]) * layer +
                      (i == 0 ? embedding : 0) + (i == s->stages - 1 ? head : 0);
        if (s->stages <= SHOWN || i < SHOWN - 1 || i == s->stages - 1)
            put_stage(&t, s, i, cost / all);
        else if (i == SHOWN - 1)
            put(&t, "...   ");
    }
    say("stages  %s%s, bubble %.1f %%", t.s, s->train.name, 100 * r.bubble);
}

static void say_memory(const struct plan_memory *m)
{
    char host[64] = "";

    if (m->host > 0)
        snprintf(host, sizeof host, ", %.1f of it in host memory", m->host);
    say("memory  per rank: weights %.1f, gradients %.1f, optimiser %.1f, activations %.1f, scratch "
        "%.1f = %.1f MiB%s",
        m->weights, m->gradients, m->optimiser, m->activations, m->scratch, m->total, host);
}

void plan_print_screen(const struct run *r)
{
    const struct config *c = r->c;
    struct plan_memory most = { 0 };
    struct err e = { "" };
    char device[640];

    for (int p = 0; p < r->g.pp; p++) {
        struct setup s;
        struct plan_memory m;
        if (setup_of_stage(&s, c, &r->g, r->ops, r->s.threads, p, &e) != OK)
            continue;
        m = memory_of(&s);
        most = m.total > most.total ? m : most;
        setup_free(&s);
    }
    say("run     %s in %s (%s%s; seed %" PRId64 ")", c->run.name, c->run.directory,
        r->resume_from[0] ? "from " : "new", r->resume_from, c->run.seed);
    say_model(c, &r->s.d);
    say_grid(&r->g, r->s.threads, 1);
    device_describe(r, device, sizeof device);
    if (device[0])
        say("device  %s", device);
    if (r->attention[0])
        say("kernels %s", r->attention);
    if (r->links.text[0])
        say("links   %s", r->links.text);
    say_batch(&r->s);
    say_stages(&r->s);
    say_memory(&most);
    sources_say(&r->data, c);
}

/* ---- --check and --plan ---- */

struct plan {
    struct config *c;
    struct grid g;
    struct sources data; /* no sources: absent */
    const struct ops *ops;
    int threads;
};

static enum status plan_open(struct plan *p, const struct plan_request *q, struct err *e)
{
    struct config *c = p->c = mem_take(sizeof *p->c);
    enum status st = config_read(c, q->deck, q->sets, q->nsets, e);

    if (st == OK)
        st = resolve_ranks(c, q->ranks, e);
    if (st == OK)
        st = resolve_model(c, NULL, e);
    if (st == OK)
        st = resolve_data(c, &p->data, e);
    if (st == OK && c->run.device == DEVICE_AUTO && setup_find_device(c, 0, NULL) == OK)
        c->run.device = DEVICE_CUDA;
    if (st == OK)
        st = setup_choose_ops(c, &p->ops, e);
    if (st != OK)
        return st;
    p->threads = c->run.threads > 0 ? (int)c->run.threads : 1;
    p->g = (struct grid){ .tp = (int)c->parallel.tp,
                          .cp = (int)c->parallel.cp,
                          .dp = (int)c->parallel.dp,
                          .pp = (int)c->parallel.pp };
    p->g.ranks = p->g.tp * p->g.cp * p->g.dp * p->g.pp;
    return OK;
}

static enum status judge_memory(const struct plan *p, const struct plan_request *q,
                                const struct plan_memory *m, struct err *e)
{
    int here = q->ranks_per_node ? (int)min_i64(q->ranks_per_node, p->g.ranks) : p->g.ranks;
    double mine = p->ops->memory ? m->host : m->total; /* a device's own is not the node's */
    double need = here * mine / 1024, limit = p->c->run.memory_limit;

    if (limit <= 0 || need <= limit)
        return OK;
    if (p->ops->memory)
        return err_set(
            e, E_RESOURCE,
            "%d ranks on a node need %.2f GiB of its memory for what is offloaded (%.1f "
            "MiB each), run.memory_limit is %.4g GiB: use more nodes, a larger tp or pp, "
            "or offload = 'none'",
            here, need, m->host, limit);
    return err_set(
        e, E_RESOURCE,
        "%d ranks on a node need %.2f GiB (%.1f MiB each: weights %.1f, gradients %.1f, optimiser "
        "%.1f, activations %.1f, scratch %.1f), run.memory_limit is %.4g GiB: use more nodes, a "
        "larger tp or pp, or a smaller micro_batch_size",
        here, need, m->total, m->weights, m->gradients, m->optimiser, m->activations, m->scratch,
        limit);
}

static void say_screen(const struct plan *p, const struct setup *s, const struct plan_memory *m)
{
    say_model(p->c, &s->d);
    say_grid(&p->g, p->threads, 0);
    say_batch(s);
    say_stages(s);
    say_memory(m);
    if (p->data.train.nsources > 0)
        sources_say(&p->data, p->c);
}

static void say_row(const struct setup *s, int rank, const struct plan_memory *m)
{
    struct text layers = { .n = 0 };
    char params[32], host[32] = "";
    int64_t n = 0;

    for (int c = 0; c < s->pipe.chunks; c++) {
        const struct stage *st = &s->pipe.stage[c];
        put(&layers, "%s%s", c ? ", " : "", st->embedding ? "embedding " : "");
        if (st->layers > 0)
            put(&layers, "%d", st->first_layer);
        if (st->layers > 1)
            put(&layers, "-%d", st->first_layer + st->layers - 1);
        put(&layers, "%s", st->head ? " head" : "");
    }
    for (int b = 0; b < s->params.nbuckets; b++)
        n += s->params.b[b].count;
    if (s->ops->memory)
        snprintf(host, sizeof host, " %9.1f", m->host);
    say("%5d  %-24s %14s %9.1f %9.1f %9.1f %11.1f %8.1f %9.1f%s  %d+%d+%d", rank, layers.s,
        log_thousands(params, n), m->weights, m->gradients, m->optimiser, m->activations,
        m->scratch, m->total, host, s->pipe.nslots, s->pipe.ngrads,
        s->pipe.split ? s->pipe.nstashes : 0);
}

/* Bytes that one rank sends in a step, by group. */
static void say_messages(const struct setup *s)
{
    double size = (double)dtype_size(s->t), x = (double)(s->env.Ts * s->d.D) * size, grad = 0;
    int tp = s->g.tp, dp = s->g.dp;

    for (int b = 0; b < s->params.nbuckets; b++)
        grad += (double)s->params.b[b].count;
    say("messages of a rank in a step:");
    if (s->g.pp > 1)
        say("  pipeline      %d x %.3f MiB to each neighbour", s->mbs * s->train.chunks, mib(x));
    if (tp > 1)
        say("  tensor        %.1f MiB in reduce-scatters and all-gathers of %.3f MiB",
            mib((double)s->mbs * (s->d.L / (double)s->g.pp) * 10 * x * (tp - 1)), mib(x * tp));
    if (dp > 1)
        say("  gradients     %.1f MiB, reduce-scatter; weights %.1f MiB, all-gather",
            mib(grad * (double)dtype_size(s->optim.type) * (dp - 1) / dp),
            mib(grad * (double)dtype_size(s->optim.weight_type) * (dp - 1) / dp));
    if (s->g.pp * tp * dp == 1)
        say("  none: one rank");
}

typedef enum status plan_say(struct plan *p, const struct setup *s0, const struct plan_memory *most,
                             const struct plan_request *q, struct err *e);

static enum status say_ok(struct plan *p, const struct setup *s0, const struct plan_memory *most,
                          const struct plan_request *q, struct err *e)
{
    char tokens[32];
    enum status st = judge_memory(p, q, most, e);

    if (st == OK)
        say("ok: %d rank%s, %.0f MiB each, %" PRId64 " steps of %s tokens; writes %s", p->g.ranks,
            p->g.ranks == 1 ? "" : "s", most->total, p->c->train.train_steps,
            log_thousands(tokens, sources_tokens(s0->c, 1)), p->c->run.directory);
    return st;
}

static enum status say_table(struct plan *p, const struct setup *s0, const struct plan_memory *most,
                             const struct plan_request *q, struct err *e)
{
    struct schedule_report r = setup_simulate(s0);
    enum status st = OK;

    say("one rank of each stage, memory in MiB; slots: micro-batches that it holds at a time, as "
        "activations + gradients + stashes");
    say("%5s  %-24s %14s %9s %9s %9s %11s %8s %9s%s  slots", "stage", "layers", "parameters",
        "weights", "gradients", "optimiser", "activations", "scratch", "total",
        p->ops->memory ? "   on host" : "");
    for (int i = 0; i < p->g.pp && st == OK; i++) {
        struct setup s;
        if ((st = setup_of_stage(&s, p->c, &p->g, p->ops, p->threads, i, e)) == OK) {
            struct plan_memory m = memory_of(&s);
            say_row(&s, i, &m);
            setup_free(&s);
        }
    }
    say("schedule %s: %d micro-batches, bubble %.1f %% of the step", s0->train.name, s0->mbs,
        100 * r.bubble);
    if (p->g.pp <= 8 && s0->mbs * s0->train.chunks <= 16) {
        char *lists = schedule_print(&s0->train, -1, -1);
        say("F forward, B backward (or its halves I, W), s send, r receive, m move, each of a "
            "micro-batch%s; R: gradients of a chunk are complete",
            s0->train.chunks > 1 ? ".chunk" : "");
        say("%s", lists);
        mem_give(lists);
    }
    say_messages(s0);
    return st == OK ? judge_memory(p, q, most, e) : st;
}

static enum status plan_run(const struct plan_request *q, plan_say *then, struct err *e)
{
    struct plan p = { 0 };
    struct setup s0, s;
    struct plan_memory most = { 0 };
    enum status st = plan_open(&p, q, e);

    if (st == OK && (st = setup_of_stage(&s0, p.c, &p.g, p.ops, p.threads, 0, e)) == OK) {
        for (int i = 0; i < p.g.pp && st == OK; i++)
            if ((st = setup_of_stage(&s, p.c, &p.g, p.ops, p.threads, i, e)) == OK) {
                struct plan_memory m = memory_of(&s);
                most = m.total > most.total ? m : most;
                setup_free(&s);
            }
        if (st == OK) {
            say_screen(&p, &s0, &most);
            st = then(&p, &s0, &most, q, e);
        }
        setup_free(&s0);
    }
    sources_close(&p.data);
    mem_give(p.c);
    return st;
}

enum status plan_check(const struct plan_request *q, struct err *e)
{
    return plan_run(q, say_ok, e);
}
enum status plan_table(const struct plan_request *q, struct err *e)
{
    return plan_run(q, say_table, e);
}
