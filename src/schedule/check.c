/* What each rank's list must hold by itself. Written from the lifetimes in schedule.h, not from the
 * code that places slots. */
#include "base/arena.h"
#include "schedule/lists.h"
#include <stdarg.h>
#include <stdio.h>

enum {
    IN = 1,
    DID_F = 2,
    OUT = 4,
    GRAD = 8,
    DID_B = 16,
    GRAD_OUT = 32,
    DID_W = 64
}; /* of a (chunk, micro-batch) */
enum { ACTIVATION, GRADIENT, STASH, POOLS };
enum { A = 1 << ACTIVATION, G = 1 << GRADIENT, S = 1 << STASH };

struct rule {
    uint8_t need, set;       /* what must have been, what is from now on */
    uint8_t take, use, drop; /* pools whose slot begins, is named, ends here */
    int8_t toward;           /* transfers: the other end is this far along the stages */
};

static const struct rule rules[ACT_KINDS] = {
    [ACT_F] = { IN, DID_F, 0, A, 0, 0 },
    [ACT_B] = { DID_F | GRAD, DID_B | DID_W, 0, A | G, A, 0 },
    [ACT_I] = { DID_F | GRAD, DID_B, S, A | G | S, 0, 0 },
    [ACT_W] = { DID_B, DID_W, 0, A | S, A | S, 0 },
    [ACT_SEND_F] = { DID_F, OUT, 0, A, 0, 1 },
    [ACT_RECV_F] = { 0, IN, A, A, 0, -1 },
    [ACT_SEND_B] = { DID_B, GRAD_OUT, 0, G, G, -1 },
    [ACT_RECV_B] = { 0, GRAD, G, G, 0, 1 },
    [ACT_MOVE_F] = { DID_F, OUT, 0, A, 0, 1 },
    [ACT_MOVE_B] = { DID_B, GRAD_OUT, 0, G, G, -1 },
};
static const char *const state_names[] = {
    "its input",      "its forward",  "the send of its output",
    "its gradient",   "its backward", "the send of its gradient",
    "its weight half"
};
static const char *const pool_names[POOLS] = { "activation", "gradient", "stash" };

struct walk {
    const struct schedule *s;
    struct schedule_report *out;
    const struct action *a;
    int rank, at;
    struct rule now[ACT_KINDS][2][2]; /* rules of [first][last] */
    uint8_t *state;                   /* [chunks, mbs] */
    int16_t *held[POOLS];             /* [chunks, mbs] */
    int32_t *user[POOLS];             /* [slots]: chunk * mbs + mb + 1; 0: free */
    int size[POOLS], live[POOLS], peak[POOLS];
    int32_t *next_w;  /* [chunks] */
    uint8_t *reduced; /* [chunks] */
};

static int __attribute__((format(printf, 2, 3))) fault(struct walk *w, const char *fmt, ...)
{
    char place[64] = "at the end", name[32];
    int n;
    va_list ap;

    if (w->a)
        snprintf(place, sizeof place, "action %d (%s)", w->at,
                 schedule_action_text(name, sizeof name, w->s, w->a));
    n = snprintf(w->out->why, sizeof w->out->why, "pp%d, %s: ", w->rank, place);
    va_start(ap, fmt);
    vsnprintf(w->out->why + n, sizeof w->out->why - (size_t)n, fmt, ap);
    va_end(ap);
    return 0;
}

static const char *lowest_name(int bits)
{
    int i = 0;

    while (!(bits >> i & 1))
        i++;
    return state_names[i];
}

/* Stages at the ends have no transfers there: what these would begin and end, F and B do. */
static void make_rules(struct walk *w)
{
    for (int k = 0; k < ACT_KINDS; k++)
        for (int first = 0; first < 2; first++)
            for (int last = 0; last < 2; last++) {
                struct rule *r = &w->now[k][first][last];
                int train = !w->s->forward_only;
                *r = rules[k];
                if (k == ACT_F && first) {
                    r->need = 0;
                    r->set |= IN;
                    r->take |= A;
                }
                if (k == ACT_F && last && train) {
                    r->set |= GRAD;
                    r->take |= G;
                    r->use |= G;
                }
                if ((k == ACT_B || k == ACT_I) && first)
                    r->drop |= G;
                if (!train && (k == ACT_SEND_F || k == ACT_MOVE_F || (k == ACT_F && last)))
                    r->drop |= A;
            }
}

static int take(struct walk *w, int pool, int slot, int64_t item)
{
    if (slot < 0 || slot >= w->size[pool])
        return fault(w, "%s slot %d is not one of %d", pool_names[pool], slot, w->size[pool]);
    if (w->user[pool][slot] != 0)
        return fault(w, "%s slot %d still holds micro-batch %d of chunk %d", pool_names[pool], slot,
                     (w->user[pool][slot] - 1) % w->s->mbs, (w->user[pool][slot] - 1) / w->s->mbs);
    w->user[pool][slot] = (int32_t)item + 1;
    w->held[pool][item] = (int16_t)slot;
    if (w->peak[pool] < ++w->live[pool])
        w->peak[pool] = w->live[pool];
    return 1;
}

static int walk_slots(struct walk *w, const struct rule *r, int64_t item)
{
    const int named[POOLS] = { w->a->slot, w->a->grad, w->a->stash };

    for (int p = 0; p < POOLS; p++) {
        int bit = 1 << p;
        if (r->take & bit && !take(w, p, named[p], item))
            return 0;
        if (!(r->use & bit)) {
            if (named[p] != -1)
                return fault(w, "names %s slot %d but uses none", pool_names[p], named[p]);
            continue;
        }
        if (named[p] < 0 || named[p] >= w->size[p] || w->user[p][named[p]] != item + 1)
            return fault(w, "%s slot %d does not hold this micro-batch", pool_names[p], named[p]);
        if (r->drop & bit) {
            w->user[p][named[p]] = 0;
            w->live[p]--;
        }
    }
    return 1;
}

/* The consumer's side of a MOVE: as a receive. */
static int walk_move(struct walk *w, int stage)
{
    int forward = w->a->kind == ACT_MOVE_F, pool = forward ? ACTIVATION : GRADIENT,
        bit = forward ? IN : GRAD;
    int64_t item = (int64_t)w->s->stage_chunk[stage] * w->s->mbs + w->a->mb;

    if ((forward ? w->a->to_grad : w->a->to_slot) != -1)
        return fault(w, "names a slot of the consumer that it does not use");
    if (w->state[item] & bit)
        return fault(w, "gives the consumer %s a second time", lowest_name(bit));
    w->state[item] |= (uint8_t)bit;
    return take(w, pool, forward ? w->a->to_slot : w->a->to_grad, item);
}

/* The other stage of a transfer; -1 after a fault. */
static int other_stage(struct walk *w, int stage, int toward)
{
    int other = stage + toward, rank, move = w->a->kind == ACT_MOVE_F || w->a->kind == ACT_MOVE_B;

    if (other < 0 || other >= w->s->pp * w->s->chunks)
        return fault(w, "stage %d has no neighbour there", stage) - 1;
    rank = w->s->stage_rank[other];
    if (move != (rank == w->rank))
        return fault(w, "stage %d is on pp%d: a transfer of the wrong kind", other, rank) - 1;
    if (w->a->peer != (move ? -1 : rank))
        return fault(w, "names pp%d as the other end, but stage %d is on pp%d", w->a->peer, other,
                     rank) -
               1;
    return other;
}

static int walk_reduce(struct walk *w)
{
    const struct action *a = w->a;

    if (w->s->forward_only)
        return fault(w, "in a forward-only list");
    if (w->next_w[a->chunk] != w->s->mbs)
        return fault(w, "before the weight half of micro-batch %d", w->next_w[a->chunk]);
    if (w->reduced[a->chunk]++)
        return fault(w, "a second time");
    if (a->slot != -1 || a->grad != -1 || a->stash != -1 || a->to_slot != -1 || a->to_grad != -1 ||
        a->peer != -1 || a->mb != -1)
        return fault(w, "names a slot, a peer or a micro-batch");
    return 1;
}

static int walk_action(struct walk *w, const struct rule *r, int stage)
{
    const struct action *a = w->a;
    int64_t item = (int64_t)a->chunk * w->s->mbs + a->mb;
    int state, other = -1;

    if (a->mb < 0 || a->mb >= w->s->mbs)
        return fault(w, "no such micro-batch");
    state = w->state[item];
    if (state & r->set)
        return fault(w, "a second time");
    if ((state & r->need) != r->need)
        return fault(w, "before %s", lowest_name(r->need & ~state));
    if (r->set & DID_W && w->next_w[a->chunk]++ != a->mb)
        return fault(w, "out of order: the next weight half is that of micro-batch %d",
                     w->next_w[a->chunk] - 1);
    if (w->s->forward_only && r->set & (GRAD | DID_B | GRAD_OUT | DID_W))
        return fault(w, "in a forward-only list");
    if (r->toward && (other = other_stage(w, stage, r->toward)) < 0)
        return 0;
    if (!r->toward && a->peer != -1)
        return fault(w, "names pp%d but is no transfer", a->peer);
    w->state[item] |= r->set;
    if (a->kind == ACT_MOVE_F || a->kind == ACT_MOVE_B) {
        if (!walk_move(w, other))
            return 0;
    } else if (a->to_slot != -1 || a->to_grad != -1) {
        return fault(w, "names a slot of a consumer but is no move");
    }
    return walk_slots(w, r, item);
}

/* Everything happened, and nothing is left. */
static int walk_end(struct walk *w)
{
    const struct schedule *s = w->s;

    w->a = NULL;
    for (int c = 0; c < s->chunks; c++) {
        int stage = s->stage_of[w->rank * s->chunks + c], want = IN | DID_F;
        want |= stage < s->pp * s->chunks - 1 ? OUT : 0;
        if (!s->forward_only)
            want |= GRAD | DID_B | DID_W | (stage > 0 ? GRAD_OUT : 0);
        for (int m = 0; m < s->mbs; m++) {
            int lacks = want & ~w->state[(int64_t)c * s->mbs + m];
            if (lacks)
                return fault(w, "micro-batch %d of chunk %d never had %s", m, c,
                             lowest_name(lacks));
        }
        if (!s->forward_only && !w->reduced[c])
            return fault(w, "the gradients of chunk %d are never reduced", c);
    }
    for (int p = 0; p < POOLS; p++)
        if (w->live[p] != 0)
            return fault(w, "%d %s slots are still taken", w->live[p], pool_names[p]);
    return 1;
}

static int walk_rank(struct walk *w)
{
    const struct schedule *s = w->s;
    int last = s->pp * s->chunks - 1;

    for (w->at = 0; w->at < s->n[w->rank]; w->at++) {
        const struct action *a = w->a = &s->list[w->rank][w->at];
        int stage;
        if (a->kind >= ACT_KINDS || a->chunk >= s->chunks)
            return fault(w, "no such kind or chunk");
        stage = s->stage_of[w->rank * s->chunks + a->chunk];
        if (a->first != (stage == 0) || a->last != (stage == last))
            return fault(w, "its marks first and last are not those of stage %d", stage);
        if (!(a->kind == ACT_REDUCE ? walk_reduce(w)
                                    : walk_action(w, &w->now[a->kind][a->first][a->last], stage)))
            return 0;
    }
    return walk_end(w);
}

static int check_tables(const struct schedule *s, struct schedule_report *r)
{
    for (int i = 0; i < s->pp * s->chunks; i++) {
        int rank = s->stage_rank[i], chunk = s->stage_chunk[i];
        if (rank < 0 || rank >= s->pp || chunk < 0 || chunk >= s->chunks ||
            s->stage_of[rank * s->chunks + chunk] != i) {
            snprintf(r->why, sizeof r->why, "stage %d is not where the tables of stages say", i);
            return 0;
        }
    }
    return 1;
}

static void walk_open(struct walk *w, int rank)
{
    const struct schedule *s = w->s;
    int size[POOLS] = { s->slots[rank], s->grads[rank], s->stashes[rank] };

    w->rank = rank;
    w->state = mem_take((size_t)s->chunks * s->mbs);
    w->next_w = mem_take((size_t)s->chunks * sizeof *w->next_w);
    w->reduced = mem_take((size_t)s->chunks);
    for (int p = 0; p < POOLS; p++) {
        w->size[p] = size[p];
        w->live[p] = 0;
        w->held[p] = mem_take((size_t)s->chunks * s->mbs * sizeof *w->held[p]);
        w->user[p] = mem_take((size_t)max_i64(1, size[p]) * sizeof *w->user[p]);
    }
}

static void walk_close(struct walk *w)
{
    mem_give(w->state);
    mem_give(w->next_w);
    mem_give(w->reduced);
    for (int p = 0; p < POOLS; p++) {
        mem_give(w->held[p]);
        mem_give(w->user[p]);
    }
}

int schedule_check(const struct schedule *s, struct schedule_report *r)
{
    struct walk w = { .s = s, .out = r };
    int good = check_tables(s, r);

    make_rules(&w);
    for (int rank = 0; rank < s->pp && good; rank++) {
        walk_open(&w, rank);
        good = walk_rank(&w);
        walk_close(&w);
    }
    r->peak_slots = w.peak[ACTIVATION];
    r->peak_grads = w.peak[GRADIENT];
    r->peak_stashes = w.peak[STASH];
    return good;
}
