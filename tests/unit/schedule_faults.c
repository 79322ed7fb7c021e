/* Every fault that is put into a list is found, and said in words. */
#include "base/arena.h"
#include "schedule/lists.h"
#include "tests/tap.h"
#include "tests/unit/schedule_make.h"

/* Where the list of a rank has the nth action of a kind; -1: nowhere. */
static int find(const struct schedule *s, int rank, int kind, int nth)
{
    for (int i = 0; i < s->n[rank]; i++)
        if (s->list[rank][i].kind == kind && nth-- == 0)
            return i;
    return -1;
}

static void drop(struct schedule *s, int rank, int at)
{
    memmove(&s->list[rank][at], &s->list[rank][at + 1],
            (size_t)(--s->n[rank] - at) * sizeof **s->list);
}

static void swap(struct schedule *s, int rank, int at, int with)
{
    struct action a = s->list[rank][at];

    s->list[rank][at] = s->list[rank][with];
    s->list[rank][with] = a;
}

static void swap_kind(struct schedule *s, int rank, int at)
{
    int with = at + 1;

    while (s->list[rank][with].kind != s->list[rank][at].kind)
        with++;
    swap(s, rank, at, with);
}

static void swap_next(struct schedule *s, int rank, int at)
{
    swap(s, rank, at, at + 1);
}

static void to_start(struct schedule *s, int rank, int at)
{
    for (; at > 0; at--)
        swap(s, rank, at, at - 1);
}

static void used_slot(struct schedule *s, int rank, int at)
{
    int i = at - 1;

    while (s->list[rank][i].kind != ACT_RECV_F)
        i--;
    s->list[rank][at].slot = s->list[rank][i].slot;
}

static void next_slot(struct schedule *s, int rank, int at)
{
    s->list[rank][at].slot++;
}

static void one_slot_fewer(struct schedule *s, int rank, int at)
{
    (void)at;
    s->slots[rank]--;
}

static void far_peer(struct schedule *s, int rank, int at)
{
    struct action *a = &s->list[rank][at];

    a->peer = (int16_t)((a->peer + 1) % s->pp);
}

static void twist_stages(struct schedule *s, int rank, int at)
{
    (void)at;
    s->stage_rank[rank] = s->stage_rank[rank + 1];
}

static void to_gradient(struct schedule *s, int rank, int at)
{
    s->list[rank][at].kind = ACT_RECV_B;
}

static const struct {
    const char *what;
    struct make make;
    int rank, kind, nth;
    void (*change)(struct schedule *s, int rank, int at);
    const char *says;
} faults[] = {
    { "no F", { "gpipe", 2, 1, 3 }, 0, ACT_F, 1, drop, "before its forward" },
    { "no last B", { "gpipe", 2, 1, 3 }, 0, ACT_B, 2, drop, "R0): before the weight half of" },
    { "no W", { "zb-h1", 4, 1, 8 }, 2, ACT_W, 3, drop, "slot 3 still holds micro-batch 3" },
    { "no last W", { "zb-h1", 4, 1, 8 }, 2, ACT_W, 7, drop, "before the weight half of" },
    { "no send", { "1f1b", 4, 1, 8 }, 1, ACT_SEND_F, 2, drop, "never had the send of its output" },
    { "no gradient sent", { "1f1b", 4, 1, 8 }, 1, ACT_SEND_B, 7, drop, "the send of its gradient" },
    { "no receive", { "1f1b", 4, 1, 8 }, 1, ACT_RECV_F, 2, drop, "F2): before its input" },
    { "no gradient", { "1f1b", 4, 1, 8 }, 1, ACT_RECV_B, 2, drop, "B2): before its gradient" },
    { "no move", { "interleaved", 1, 2, 2 }, 0, ACT_MOVE_F, 0, drop, "F0.1): before its input" },
    { "no reduction", { "1f1b", 2, 1, 2 }, 1, ACT_REDUCE, 0, drop, "are never reduced" },
    { "early R", { "1f1b", 2, 1, 2 }, 1, ACT_REDUCE, 0, to_start, "R0): before the weight" },
    { "receives swapped", { "1f1b", 4, 1, 8 }, 1, ACT_RECV_F, 0, swap_kind, "not the two ends of" },
    { "later ones", { "1f1b", 4, 1, 8 }, 1, ACT_RECV_F, 3, swap_kind, "still holds micro-batch 1" },
    { "W swapped", { "zb-h1", 4, 1, 8 }, 3, ACT_W, 5, swap_kind, "W6): out of order: the next" },
    { "B swapped", { "gpipe", 1, 1, 3 }, 0, ACT_B, 0, swap_kind, "B1): out of order" },
    { "late receive", { "1f1b", 4, 1, 8 }, 3, ACT_RECV_F, 2, swap_next, "F2): before its input" },
    { "send before F", { "1f1b", 4, 1, 8 }, 0, ACT_F, 0, swap_next, "sF0): before its forward" },
    { "slot reused", { "1f1b", 4, 1, 8 }, 1, ACT_RECV_F, 1, used_slot, "slot 0 still holds" },
    { "slot missing", { "1f1b", 4, 1, 8 }, 1, ACT_F, 0, one_slot_fewer, "is not one of 2" },
    { "another's slot", { "1f1b", 4, 1, 8 }, 1, ACT_F, 0, next_slot, "slot 1 does not hold this" },
    { "wrong peer", { "1f1b", 4, 1, 8 }, 1, ACT_SEND_F, 1, far_peer, "but stage 2 is on pp2" },
    { "stages twisted", { "1f1b", 4, 1, 8 }, 1, ACT_F, 0, twist_stages, "tables of stages" },
    { "a gradient",
      { "=gpipe", 2, 1, 2 },
      1,
      ACT_RECV_F,
      0,
      to_gradient,
      "in a forward-only list" },
};

static void test_faults(void)
{
    for (int i = 0; i < COUNT_OF(faults); i++) {
        struct schedule s = build(faults[i].make);
        int at = find(&s, faults[i].rank, faults[i].kind, faults[i].nth);
        struct schedule_report r;

        faults[i].change(&s, faults[i].rank, at);
        r = schedule_simulate(&s, NULL);
        tap_ok(at >= 0 && !r.ok && strstr(r.why, faults[i].says), "%s: %s", faults[i].what, r.why);
        schedule_free(&s);
    }
}

/* Change field number k of one action; 0 when there are no more. */
static int mutate(struct action *a, int k)
{
    int16_t *slots[] = { &a->slot, &a->grad, &a->stash, &a->to_slot, &a->to_grad, &a->peer };

    switch (k) {
    case 0:
        a->kind++;
        return 1;
    case 1:
        a->chunk++;
        return 1;
    case 2:
        a->mb++;
        return 1;
    case 3:
        a->mb--;
        return 1;
    case 4:
        a->first ^= 1;
        return 1;
    case 5:
        a->last ^= 1;
        return 1;
    }
    k -= 6;
    if (k >= 2 * COUNT_OF(slots))
        return 0;
    *slots[k / 2] = (int16_t)(*slots[k / 2] + (k % 2 ? 1 : -1));
    return 1;
}

static const struct make small[] = { { "gpipe", 3, 1, 4 },       { "1f1b", 4, 1, 6 },
                                     { "zb-h1", 3, 1, 5 },       { "interleaved", 2, 3, 4 },
                                     { "interleaved", 1, 3, 3 }, { "1f1b", 1, 1, 2 },
                                     { "=1f1b", 3, 1, 4 },       { "=interleaved", 1, 2, 3 } };

/* Any field of any action changed, any action dropped: a fault. */
static void test_mutations(void)
{
    for (int i = 0; i < COUNT_OF(small); i++) {
        struct schedule s = build(small[i]);
        int tried = 0, found = 0;

        for (int r = 0; r < s.pp; r++)
            for (int at = 0; at < s.n[r]; at++) {
                struct action *a = &s.list[r][at], whole = *a;
                for (int k = 0; mutate(a, k); k++, *a = whole) {
                    struct schedule_report report = schedule_simulate(&s, NULL);
                    tried++;
                    found += !report.ok && report.why[0];
                    if (report.ok)
                        printf("# pp%d, action %d, change %d is not found\n", r, at, k);
                }
                drop(&s, r, at);
                tried++;
                found += !schedule_simulate(&s, NULL).ok;
                memmove(a + 1, a, (size_t)(s.n[r]++ - at) * sizeof *a);
                *a = whole;
            }
        tap_ok(found == tried && schedule_simulate(&s, NULL).ok,
               "%s, pp %d: %d of %d changes found", small[i].name, small[i].pp, found, tried);
        schedule_free(&s);
    }
}

/* The order of textbooks: each receive right before its use, each send right after its computation.
 */
static void make_textbook(struct schedule *s, int rank)
{
    struct action *list = s->list[rank], *old = mem_take((size_t)s->n[rank] * sizeof *old);
    int n = s->n[rank], out = 0;

    memcpy(old, list, (size_t)n * sizeof *old);
    for (int i = 0; i < n; i++) {
        int kind = old[i].kind, before = kind == ACT_F ? ACT_RECV_F : ACT_RECV_B;
        int after = kind == ACT_F ? ACT_SEND_F : ACT_SEND_B;
        if (kind >= ACT_SEND_F && kind <= ACT_RECV_B)
            continue;
        for (int part = 0; part < 3; part++)
            for (int j = 0; j < n; j++) {
                int wanted = part == 0 ? before : part == 1 ? kind : after;
                if (part != 1 && (kind == ACT_W || kind == ACT_REDUCE))
                    continue;
                if (part == 1 ? j == i
                              : old[j].kind == wanted && old[j].mb == old[i].mb &&
                                    old[j].chunk == old[i].chunk)
                    list[out++] = old[j];
            }
    }
    BUG_IF(out != n);
    mem_give(old);
}

static void test_textbook(void)
{
    static const struct make all[] = {
        { "1f1b", 4, 1, 8 }, { "zb-h1", 4, 1, 8 }, { "interleaved", 4, 2, 8 }, { "gpipe", 4, 1, 8 }
    };

    for (int i = 0; i < COUNT_OF(all); i++) {
        struct schedule s = build(all[i]);
        struct schedule_report r;
        int deadlocks = strcmp(all[i].name, "gpipe") != 0;
        struct err e = { "" };

        for (int rank = 0; rank < s.pp; rank++)
            make_textbook(&s, rank);
        schedule_place_slots(&s, &e);
        r = schedule_simulate(&s, NULL);
        tap_ok(r.ok == !deadlocks && (!deadlocks || strstr(r.why, "deadlock: pp")),
               "%s with the receives of textbooks: %s", all[i].name, r.ok ? "runs" : r.why);
        schedule_free(&s);
    }
}

int main(void)
{
    tap_plan(COUNT_OF(faults) + COUNT_OF(small) + 4);
    test_faults();
    test_mutations();
    test_textbook();
    return tap_done();
}
