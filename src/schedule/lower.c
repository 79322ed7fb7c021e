/* From the order of computations to lists with transfers.
 *
 * The order runs on a clock: a transfer takes one tick, F, I and W take 64, B twice that. A
 * transfer starts when its data is there, both queues are idle and the receiver has a slot; then
 * both its ends are appended at once. So all transfers have one global order that each rank's queue
 * follows, and whatever an action waits for stands before it in that order: the lists cannot
 * deadlock, even when a send completes only with its receive and each rank has a single queue. */
#include "base/arena.h"
#include "schedule/lists.h"

enum { HAS_INPUT = 1, HAS_GRAD = 2 };        /* of a (stage, micro-batch): arrived */
enum { TICKS = 64, WHEEL = 256, WORD = 64 }; /* WHEEL: more than the longest action */

struct lane { /* one rank */
    const struct step *todo;
    int n, done; /* steps; finished ones: todo[done] is the next, or runs */
    int running;
    int busy;       /* its queue transfers */
    uint8_t *lands; /* where what the queue receives is noted, and what; NULL: nothing */
    uint8_t lands_bit;
    int sent[2];   /* steps whose forward, backward transfer is behind us */
    int live, cap; /* activation slots taken, and how many there may be */
    int out_n;
    struct action *out;
};

struct lowering {
    struct schedule *s;
    struct lane *lanes; /* [pp] */
    uint8_t *has;       /* [stages, mbs] */
    int left;           /* ranks with steps to finish */
    int64_t now;
    int waiting;                  /* events on the wheel */
    uint64_t marks[WHEEL / WORD]; /* which ticks of the wheel have events */
    int head[WHEEL], *next;  /* lists of events + 1; event 2 r: a step ends, 2 r + 1: queue idle */
    int *touched, touched_n; /* [2 pp] ranks for which something changed in this tick */
};

static const int ticks[ACT_KINDS] = {
    [ACT_F] = TICKS, [ACT_B] = 2 * TICKS, [ACT_I] = TICKS, [ACT_W] = TICKS
};

static void wheel_put(struct lowering *l, int event, int ticks_from_now)
{
    int at = (int)((l->now + ticks_from_now) % WHEEL);

    l->next[event] = l->head[at];
    l->head[at] = event + 1;
    l->marks[at / WORD] |= UINT64_C(1) << at % WORD;
    l->waiting++;
}

/* Go to the next tick with events and return the first of its list. */
static int wheel_turn(struct lowering *l)
{
    int at = (int)(l->now % WHEEL), from = at, events;

    while (!(l->marks[at / WORD] >> at % WORD)) {
        at = (at / WORD + 1) * WORD % WHEEL;
        BUG_IF(at == from);
    }
    at += __builtin_ctzll(l->marks[at / WORD] >> at % WORD);
    l->now += (at - from + WHEEL) % WHEEL;
    events = l->head[at];
    l->head[at] = 0;
    l->marks[at / WORD] &= ~(UINT64_C(1) << at % WORD);
    return events;
}

static int stage_at(const struct lowering *l, int rank, int chunk)
{
    return l->s->stage_of[rank * l->s->chunks + chunk];
}

static int is_last(const struct lowering *l, int stage)
{
    return stage == l->s->pp * l->s->chunks - 1;
}

static uint8_t *has_at(struct lowering *l, int stage, int mb)
{
    return &l->has[(int64_t)stage * l->s->mbs + mb];
}

static void append(struct lowering *l, int rank, enum act kind, int chunk, int mb, int peer)
{
    struct lane *at = &l->lanes[rank];
    int stage = stage_at(l, rank, chunk);

    at->out[at->out_n++] = (struct action){ .kind = (uint8_t)kind,
                                            .chunk = (uint8_t)chunk,
                                            .slot = -1,
                                            .grad = -1,
                                            .stash = -1,
                                            .to_slot = -1,
                                            .to_grad = -1,
                                            .mb = mb,
                                            .peer = (int16_t)peer,
                                            .first = stage == 0,
                                            .last = (uint8_t)is_last(l, stage) };
}

/* Where the result of a step goes: the next stage after F, the one before after B and I; -1:
 * nowhere. */
static int target_of(const struct lowering *l, int rank, const struct step *a)
{
    int stage = stage_at(l, rank, a->chunk);

    if (a->kind == ACT_W)
        return -1;
    if (a->kind != ACT_F)
        return stage - 1;
    return is_last(l, stage) ? -1 : stage + 1;
}

/* Append the transfer of a finished step to both ends, the move to one. */
static void transfer(struct lowering *l, int rank, const struct step *a, int stage)
{
    int to = l->s->stage_rank[stage], chunk = l->s->stage_chunk[stage], forward = a->kind == ACT_F;
    struct lane *x = &l->lanes[rank], *y = &l->lanes[to];
    uint8_t *has = has_at(l, stage, a->mb), bit = forward ? HAS_INPUT : HAS_GRAD;

    if (to == rank) {
        append(l, rank, forward ? ACT_MOVE_F : ACT_MOVE_B, a->chunk, a->mb, -1);
        *has |= bit;
    } else {
        append(l, rank, forward ? ACT_SEND_F : ACT_SEND_B, a->chunk, a->mb, to);
        append(l, to, forward ? ACT_RECV_F : ACT_RECV_B, chunk, a->mb, rank);
        x->busy = y->busy = 1;
        y->lands = has;
        y->lands_bit = bit;
        wheel_put(l, 2 * rank + 1, 1);
        wheel_put(l, 2 * to + 1, 1);
    }
    if (forward) {
        y->live++;
        x->live -= l->s->forward_only;
    }
}

/* Start the oldest transfer of this direction if it can start. */
static void send_ready(struct lowering *l, int rank, int backward)
{
    struct lane *x = &l->lanes[rank];

    for (; x->sent[backward] < x->done && !x->busy; x->sent[backward]++) {
        const struct step *a = &x->todo[x->sent[backward]];
        int stage = (a->kind != ACT_F) == backward ? target_of(l, rank, a) : -1;
        const struct lane *y = stage < 0 ? x : &l->lanes[l->s->stage_rank[stage]];

        if (y == x)
            continue;
        if (y->busy || (!backward && y->live >= y->cap))
            return;
        transfer(l, rank, a, stage);
    }
}

static int can_start(struct lowering *l, int rank, const struct step *a)
{
    const struct lane *at = &l->lanes[rank];
    int stage = stage_at(l, rank, a->chunk);

    if (a->kind == ACT_W)
        return 1;
    if (a->kind == ACT_F)
        return stage == 0 ? at->live < at->cap : *has_at(l, stage, a->mb) & HAS_INPUT;
    return is_last(l, stage) || *has_at(l, stage, a->mb) & HAS_GRAD;
}

static void start(struct lowering *l, int rank)
{
    struct lane *at = &l->lanes[rank];
    const struct step *a = &at->todo[at->done];

    if (at->running || at->done == at->n || !can_start(l, rank, a))
        return;
    at->running = 1;
    at->live += a->kind == ACT_F && stage_at(l, rank, a->chunk) == 0;
    wheel_put(l, 2 * rank, ticks[a->kind]);
}

/* The step itself is appended now: receives that came while it ran stand before it. */
static void finish(struct lowering *l, int rank)
{
    struct lane *at = &l->lanes[rank];
    const struct step *a = &at->todo[at->done];
    int stage = stage_at(l, rank, a->chunk), to = target_of(l, rank, a),
        whole = a->kind == ACT_B || a->kind == ACT_W;

    append(l, rank, a->kind, a->chunk, a->mb, -1);
    at->live -= whole || (a->kind == ACT_F && l->s->forward_only && is_last(l, stage));
    at->running = 0;
    l->left -= ++at->done == at->n;
    if (to >= 0 && l->s->stage_rank[to] == rank)
        transfer(l, rank, a, to);
    if (whole && a->mb == l->s->mbs - 1)
        append(l, rank, ACT_REDUCE, a->chunk, -1, -1);
}

static void land(struct lowering *l, int rank)
{
    struct lane *at = &l->lanes[rank];

    at->busy = 0;
    if (at->lands)
        *at->lands |= at->lands_bit;
    at->lands = NULL;
}

/* Nothing moves: give one more slot to the first rank that a forward waits for. 0: it is not for
 * want of slots. */
static int give_slot(struct lowering *l)
{
    for (int r = 0; r < l->s->pp; r++) {
        struct lane *at = &l->lanes[r];
        int f = at->sent[0];

        if (at->done < at->n && at->todo[at->done].kind == ACT_F &&
            stage_at(l, r, at->todo[at->done].chunk) == 0)
            return ++at->cap;
        if (f < at->done)
            return ++l->lanes[l->s->stage_rank[target_of(l, r, &at->todo[f])]].cap;
    }
    return 0;
}

/* Start what can start now. Backward transfers go first: whole ranks wait for them. A rank's
 * neighbours are those that send to it. */
static void start_touched(struct lowering *l)
{
    int pp = l->s->pp;

    for (int backward = 1; backward >= 0; backward--)
        for (int i = 0; i < l->touched_n; i++) {
            int r = l->touched[i];
            int ranks[3] = { r, r + 1 < pp ? r + 1 : 0, r > 0 ? r - 1 : pp - 1 };
            for (int k = 0; k < COUNT_OF(ranks); k++) {
                const struct lane *x = &l->lanes[ranks[k]];
                if (!x->busy && x->sent[backward] < x->done)
                    send_ready(l, ranks[k], backward);
            }
        }
    for (int i = 0; i < l->touched_n; i++)
        start(l, l->touched[i]);
}

static enum status run(struct lowering *l, struct err *e)
{
    for (int begun = 0; l->left > 0 || l->waiting > 0; begun = 1) {
        l->touched_n = 0;
        if (l->waiting > 0) {
            for (int event = wheel_turn(l); event > 0; event = l->next[event - 1]) {
                int rank = (event - 1) / 2;
                (event % 2 ? finish : land)(l, rank);
                l->touched[l->touched_n++] = rank;
                l->waiting--;
            }
        } else {
            if (begun && !give_slot(l))
                return err_set(
                    e, E_BUG,
                    "schedule %s, pp %d, %d chunks, %d micro-batches: the order cannot run",
                    l->s->name, l->s->pp, l->s->chunks, l->s->mbs);
            for (int r = 0; r < l->s->pp; r++)
                l->touched[l->touched_n++] = r;
        }
        start_touched(l);
    }
    return OK;
}

/* Actions of each rank are known beforehand. */
static int count_actions(const struct schedule *s, int rank, int steps)
{
    int64_t n = steps + (s->forward_only ? 0 : s->chunks);
    int last = s->pp * s->chunks - 1;

    for (int c = 0; c < s->chunks; c++) {
        int stage = s->stage_of[rank * s->chunks + c];
        int in = stage > 0 && s->stage_rank[stage - 1] != rank, out = stage < last;
        int grad_in = out && s->stage_rank[stage + 1] != rank, grad_out = stage > 0;
        n += (int64_t)(in + out + (s->forward_only ? 0 : grad_in + grad_out)) * s->mbs;
    }
    return (int)n;
}

enum status schedule_lower(struct schedule *s, const struct step *order, int n, int *cap,
                           struct err *e)
{
    struct lowering l = { .s = s, .left = s->pp };
    int64_t all = 0;
    enum status st;

    l.lanes = mem_take((size_t)s->pp * sizeof *l.lanes);
    l.has = mem_take((size_t)s->pp * s->chunks * s->mbs);
    l.next = mem_take((size_t)s->pp * 2 * sizeof *l.next);
    l.touched = mem_take((size_t)s->pp * 2 * sizeof *l.touched);
    for (int r = 0; r < s->pp; r++)
        all += s->n[r] = count_actions(s, r, n);
    s->list[0] = mem_take((size_t)all * sizeof **s->list);
    for (int r = 0; r < s->pp; r++) {
        if (r > 0)
            s->list[r] = s->list[r - 1] + s->n[r - 1];
        l.lanes[r] = (struct lane){
            .todo = order + (int64_t)r * n, .n = n, .cap = cap[r], .out = s->list[r]
        };
    }
    st = run(&l, e);
    for (int r = 0; r < s->pp && st == OK; r++)
        BUG_IF(l.lanes[r].out_n != s->n[r]);
    mem_give(l.lanes);
    mem_give(l.has);
    mem_give(l.next);
    mem_give(l.touched);
    return st;
}
