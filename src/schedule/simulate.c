/* Running the lists on the strictest transport: each rank has one in-order queue without buffers, a
 * send completes only with its receive. A rank posts a transfer and goes on; it stops where an
 * action consumes a receive that has not completed, and where it reuses a slot that is still the
 * source of a pending send. Nothing here depends on the order in which ranks are looked at. */
#include "base/arena.h"
#include "schedule/lists.h"
#include <math.h>
#include <stdio.h>

enum { ACTIVATION, GRADIENT, POOLS };

struct node {          /* one rank */
    int at, head;      /* next action; first transfer that has not completed (posted if < at) */
    int queued;        /* is in the list of ranks to look at */
    double now, queue; /* clock of the rank; when its queue finished its last transfer */
    double compute;
    double *posted;                 /* [n] when the transfer was posted */
    double *in[POOLS], *out[POOLS]; /* [slots]: when the receive into, the send from it completed;
                                       INFINITY: pending */
};

struct sim {
    const struct schedule *s;
    const struct schedule_cost *cost;
    double unit; /* cost of F, I, W where none is given */
    struct schedule_report *r;
    struct node *nodes;
    double *times;     /* memory of posted, in, out */
    int *todo, todo_n; /* [pp] ranks to look at */
};

static int is_send(const struct action *a)
{
    return a->kind == ACT_SEND_F || a->kind == ACT_SEND_B;
}
static int is_receive(const struct action *a)
{
    return a->kind == ACT_RECV_F || a->kind == ACT_RECV_B;
}
static int is_forward(const struct action *a)
{
    return a->kind == ACT_SEND_F || a->kind == ACT_RECV_F || a->kind == ACT_MOVE_F;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static void look_at(struct sim *m, int rank)
{
    if (!m->nodes[rank].queued)
        m->todo[m->todo_n++] = rank;
    m->nodes[rank].queued = 1;
}

/* of F, I or W; NULL: the unit */
static double cost_of(const struct sim *m, const double *table, int stage)
{
    return table ? table[stage] : m->unit;
}

/* The rank waits until t; 0 if that is not known yet. */
static int wait_for(struct node *v, double t)
{
    if (t == INFINITY)
        return 0;
    v->now = later(v->now, t);
    return 1;
}

static int compute(struct sim *m, int rank, const struct action *a)
{
    struct node *v = &m->nodes[rank];
    int stage = m->s->stage_of[rank * m->s->chunks + a->chunk];
    double cost = 0;

    if (a->kind == ACT_F &&
        !wait_for(v, a->first ? v->out[ACTIVATION][a->slot] : v->in[ACTIVATION][a->slot]))
        return 0;
    if (a->kind == ACT_F && a->grad >= 0) {
        if (!wait_for(v, v->out[GRADIENT][a->grad]))
            return 0;
        v->in[GRADIENT][a->grad] = 0;
    }
    if ((a->kind == ACT_B || a->kind == ACT_I) && !wait_for(v, v->in[GRADIENT][a->grad]))
        return 0;
    if (a->kind == ACT_F)
        cost = cost_of(m, m->cost->f, stage);
    if (a->kind == ACT_B || a->kind == ACT_I)
        cost += cost_of(m, m->cost->i, stage);
    if (a->kind == ACT_B || a->kind == ACT_W)
        cost += cost_of(m, m->cost->w, stage);
    v->now += cost;
    v->compute += cost;
    return 1;
}

static int move(struct sim *m, int rank, const struct action *a)
{
    struct node *v = &m->nodes[rank];
    int pool = is_forward(a) ? ACTIVATION : GRADIENT, to = is_forward(a) ? a->to_slot : a->to_grad;

    if (!wait_for(v, v->out[pool][to]))
        return 0;
    v->in[pool][to] = v->now;
    return 1;
}

static int post(struct sim *m, int rank, const struct action *a)
{
    struct node *v = &m->nodes[rank];
    int pool = is_forward(a) ? ACTIVATION : GRADIENT, slot = is_forward(a) ? a->slot : a->grad;

    if (is_receive(a) && !wait_for(v, v->out[pool][slot]))
        return 0;
    *(is_receive(a) ? &v->in[pool][slot] : &v->out[pool][slot]) = INFINITY;
    v->posted[v->at] = v->now;
    return 1;
}

static int (*const act[ACT_KINDS])(struct sim *, int, const struct action *) = {
    [ACT_F] = compute,   [ACT_B] = compute,   [ACT_I] = compute,   [ACT_W] = compute,
    [ACT_SEND_F] = post, [ACT_RECV_F] = post, [ACT_SEND_B] = post, [ACT_RECV_B] = post,
    [ACT_MOVE_F] = move, [ACT_MOVE_B] = move,
};

static void advance(struct sim *m, int rank)
{
    struct node *v = &m->nodes[rank];
    const struct action *list = m->s->list[rank];

    for (; v->at < m->s->n[rank]; v->at++)
        if (act[list[v->at].kind] && !act[list[v->at].kind](m, rank, &list[v->at]))
            return;
}

/* The transfer at the head of a rank's queue, or NULL if none is posted. */
static const struct action *head_of(struct sim *m, int rank)
{
    struct node *v = &m->nodes[rank];
    const struct action *list = m->s->list[rank];

    while (v->head < v->at && !is_send(&list[v->head]) && !is_receive(&list[v->head]))
        v->head++;
    return v->head < v->at ? &list[v->head] : NULL;
}

static int mismatch(struct sim *m, int from, const struct action *a, int to, const struct action *b)
{
    char x[32], y[32];

    snprintf(
        m->r->why, sizeof m->r->why,
        "pp%d, action %d (%s) meets pp%d, action %d (%s): these are not the two ends of a transfer",
        from, m->nodes[from].head, schedule_action_text(x, sizeof x, m->s, a), to,
        m->nodes[to].head, schedule_action_text(y, sizeof y, m->s, b));
    return 0;
}

/* Complete the transfer at the head of this rank's queue if its other end is at the head of the
 * peer's. 0 after a fault. */
static int settle(struct sim *m, int rank, int *moved)
{
    const struct action *a = head_of(m, rank), *b = a ? head_of(m, a->peer) : NULL, *send, *receive;
    int chunks = m->s->chunks, from, to, pool;
    struct node *x, *y;
    double done;

    *moved = 0;
    if (!b || b->peer != rank || is_send(a) == is_send(b))
        return 1;
    send = is_send(a) ? a : b;
    receive = is_send(a) ? b : a;
    from = receive->peer;
    to = send->peer;
    if (is_forward(send) != is_forward(receive) || send->mb != receive->mb ||
        m->s->stage_of[to * chunks + receive->chunk] !=
            m->s->stage_of[from * chunks + send->chunk] + (is_forward(send) ? 1 : -1))
        return mismatch(m, from, send, to, receive);
    x = &m->nodes[from];
    y = &m->nodes[to];
    done = later(later(x->posted[x->head], y->posted[y->head]), later(x->queue, y->queue)) +
           m->cost->transfer;
    pool = is_forward(send) ? ACTIVATION : GRADIENT;
    x->queue = y->queue = done;
    x->out[pool][is_forward(send) ? send->slot : send->grad] = done;
    y->in[pool][is_forward(send) ? receive->slot : receive->grad] = done;
    x->head++;
    y->head++;
    look_at(m, from);
    look_at(m, to);
    *moved = 1;
    return 1;
}

static int stuck(struct sim *m)
{
    char x[32] = "end", y[32], queue[96] = "is empty";

    for (int r = 0; r < m->s->pp; r++) {
        const struct action *head = head_of(m, r);
        int at = m->nodes[r].at, ended = at == m->s->n[r];
        if (ended && !head)
            continue;
        if (!ended)
            schedule_action_text(x, sizeof x, m->s, &m->s->list[r][at]);
        if (head)
            snprintf(queue, sizeof queue, "waits at action %d (%s) for pp%d", m->nodes[r].head,
                     schedule_action_text(y, sizeof y, m->s, head), head->peer);
        snprintf(m->r->why, sizeof m->r->why,
                 "deadlock: pp%d stands at action %d (%s), its queue %s", r, at, x, queue);
        return 0;
    }
    return 1;
}

static int run(struct sim *m)
{
    for (int r = 0; r < m->s->pp; r++)
        look_at(m, r);
    while (m->todo_n > 0) {
        int rank = m->todo[--m->todo_n], moved;
        m->nodes[rank].queued = 0;
        do {
            advance(m, rank);
            if (!settle(m, rank, &moved))
                return 0;
        } while (moved);
    }
    return stuck(m);
}

static void open_nodes(struct sim *m)
{
    const struct schedule *s = m->s;
    size_t all = 0;
    double *next;

    for (int r = 0; r < s->pp; r++)
        all += (size_t)s->n[r] + 2 * ((size_t)s->slots[r] + (size_t)s->grads[r]);
    next = m->times = mem_take((all + 1) * sizeof *next);
    m->nodes = mem_take((size_t)s->pp * sizeof *m->nodes);
    m->todo = mem_take((size_t)s->pp * sizeof *m->todo);
    for (int r = 0; r < s->pp; r++) {
        const int sizes[POOLS] = { s->slots[r], s->grads[r] };
        m->nodes[r].posted = next;
        next += s->n[r];
        for (int p = 0; p < POOLS; p++) {
            m->nodes[r].in[p] = next;
            m->nodes[r].out[p] = next + sizes[p];
            next += 2 * sizes[p];
        }
    }
}

struct schedule_report schedule_simulate(const struct schedule *s, const struct schedule_cost *cost)
{
    static const struct schedule_cost none;
    struct schedule_report r = { 0 };
    struct sim m = { .s = s, .cost = cost ? cost : &none, .unit = 1.0 / s->chunks, .r = &r };
    double all = 0;

    if (!schedule_check(s, &r))
        return r;
    open_nodes(&m);
    r.ok = run(&m);
    for (int i = 0; i < s->pp; i++) {
        r.makespan = later(r.makespan, later(m.nodes[i].now, m.nodes[i].queue));
        r.work = later(r.work, m.nodes[i].compute);
        all += m.nodes[i].compute;
    }
    r.bubble = r.makespan > 0 ? 1 - all / (s->pp * r.makespan) : 0;
    mem_give(m.nodes);
    mem_give(m.todo);
    mem_give(m.times);
    return r;
}
