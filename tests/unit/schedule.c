/* Schedules: theory, slots, texts, refusals. */
#include "base/arena.h"
#include "schedule/lists.h"
#include "tests/tap.h"
#include "tests/unit/schedule_make.h"

#include <math.h>

static int near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* F = I = W = 1 of a rank's layers, free transfers. */
static const struct {
    struct make make;
    double makespan;
    int slots, stashes;
} theory[] = {
    { { "gpipe", 4, 1, 8 }, 33, 8, 0 },          /* bubble 27.3 %: 3 (pp - 1) */
    { { "1f1b", 4, 1, 8 }, 33, 4, 0 },           /* 27.3 % */
    { { "interleaved", 4, 2, 8 }, 28.5, 11, 0 }, /* 15.8 %: 3 (pp - 1) / v */
    { { "zb-h1", 4, 1, 8 }, 27, 4, 4 },          /* 11.1 %: pp - 1 */
    { { "1f1b", 1, 1, 3 }, 9, 1, 0 },
    { { "zb-h1", 1, 1, 3 }, 9, 1, 1 },
    { { "gpipe", 3, 1, 1 }, 9, 1, 0 },
    { { "1f1b", 8, 1, 3 }, 30, 3, 0 },
    { { "zb-h1", 8, 1, 1 }, 17, 1, 1 },
    { { "interleaved", 1, 3, 2 }, 6, 4, 0 },
    { { "interleaved", 2, 8, 2 }, 6.375, 16, 0 },
    { { "zb-h1", 16, 1, 5000 }, 15015, 16, 16 },
};

static void test_theory(void)
{
    for (int i = 0; i < COUNT_OF(theory); i++) {
        const struct make *m = &theory[i].make;
        struct schedule s = build(*m);
        struct schedule_report r = schedule_simulate(&s, NULL);
        double bubble = 1 - 3.0 * m->mbs / theory[i].makespan;

        tap_ok(r.ok && near(r.makespan, theory[i].makespan) && near(r.bubble, bubble) &&
                   near(r.work, 3.0 * m->mbs),
               "%s, pp %d, v %d, M %d: makespan %g, bubble %.1f %%", m->name, m->pp, m->chunks,
               m->mbs, r.makespan, 100 * r.bubble);
        tap_ok(r.peak_slots == theory[i].slots && r.peak_stashes == theory[i].stashes,
               "%d activations, %d stashes", r.peak_slots, r.peak_stashes);
        schedule_free(&s);
    }
}

static int count_slots(struct make m, int (*most)(struct make m, int rank))
{
    struct schedule s = build(m);
    int good = 1;

    for (int r = 0; r < m.pp; r++)
        good &= s.slots[r] >= 1 && s.slots[r] <= most(m, r);
    schedule_free(&s);
    return good;
}

static int most_1f1b(struct make m, int rank)
{
    return (int)min_i64(m.pp - rank, m.mbs);
}

static int most_gpipe(struct make m, int rank)
{
    (void)rank;
    return m.mbs;
}

static int most_zb_h1(struct make m, int rank)
{
    (void)rank;
    return (int)min_i64(m.pp, m.mbs);
}

static int forward_fits(struct make m)
{
    struct schedule s = build(m), f;
    int good = schedule_build_forward(&f, &s, 7, NULL) == OK;

    for (int r = 0; r < m.pp; r++)
        good &= f.slots[r] <= min_i64(2, s.slots[r]) && f.grads[r] == 0 && f.stashes[r] == 0;
    schedule_free(&f);
    schedule_free(&s);
    return good;
}

static void test_slots(void)
{
    static const int micro_batches[] = { 1, 2, 5, 8, 31 };
    int good[4] = { 1, 1, 1, 1 };

    for (int i = 0; i < COUNT_OF(micro_batches); i++)
        for (int pp = 1; pp <= 9; pp++) {
            int m = micro_batches[i];
            good[0] &= count_slots((struct make){ "1f1b", pp, 1, m }, most_1f1b);
            good[1] &= count_slots((struct make){ "gpipe", pp, 1, m }, most_gpipe);
            good[2] &= count_slots((struct make){ "zb-h1", pp, 1, m }, most_zb_h1);
            good[3] &= forward_fits((struct make){ "1f1b", pp, 1, m }) &
                       forward_fits((struct make){ "gpipe", pp, 1, m }) &
                       forward_fits((struct make){ "interleaved", pp, 3, pp * m });
        }
    tap_ok(good[0], "1f1b: at most min(pp - rank, M) activations");
    tap_ok(good[1], "gpipe: at most M activations");
    tap_ok(good[2], "zb-h1: at most min(pp, M) activations");
    tap_ok(good[3], "forward-only: at most 2 activations, and no more than training has");
}

static const struct {
    struct make make;
    int rank, mark;
    const char *text;
} texts[] = {
    { { "1f1b", 2, 1, 2 },
      1,
      1,
      "pp0: F0 sF0 F1 rB0 sF1 B0 rB1 B1 R0\n"
      "pp1: rF0 F0 <-- B0 sB0 rF1 F1 B1 R0 sB1\n" },
    { { "interleaved", 1, 2, 1 }, -1, 0, "pp0: F0.0 mF0.0 F0.1 B0.1 mB0.1 R1 B0.0 R0\n" },
    { { "=gpipe", 2, 1, 2 }, 0, 3, "pp0: F0 sF0 F1 sF1 <--\npp1: rF0 rF1 F0 F1\n" },
};

static void test_texts(void)
{
    for (int i = 0; i < COUNT_OF(texts); i++) {
        struct schedule s = build(texts[i].make);
        char *text = schedule_print(&s, texts[i].rank, texts[i].mark);

        if (!tap_ok(!strcmp(text, texts[i].text), "printed %s", texts[i].make.name))
            printf("# %s\n", text);
        mem_give(text);
        schedule_free(&s);
    }
}

static const struct {
    struct make make;
    const char *says;
} refusals[] = {
    { { "pipedream", 2, 1, 4 }, "no schedule \"pipedream\"; there are gpipe, 1f1b" },
    { { "1f1b", 0, 1, 4 }, "must be at least 1" },
    { { "1f1b", 2, 1, 0 }, "must be at least 1" },
    { { "1f1b", 2, 2, 4 }, "choose interleaved" },
    { { "interleaved", 2, 1, 4 }, "at least 2, not 1" },
    { { "interleaved", 4, 2, 6 }, "pp = 4 does not divide the 6 micro-batches" },
    { { "interleaved", 4, 2, 6 }, "nearest that work: 4, 8" },
    { { "interleaved", 4, 2, 3 }, "nearest that work: 4, 8" },
    { { "interleaved", 4, 256, 4 }, "255 per rank" },
    { { "1f1b", 5000, 1, 4 }, "at most 4096" },
    { { "gpipe", 1, 1, 40000 }, "more than 32767 activations" },
    { { "1f1b", 1, 1, 2000000000 }, "too many" },
};

static void test_refusals(void)
{
    for (int i = 0; i < COUNT_OF(refusals); i++) {
        const struct make *m = &refusals[i].make;
        struct schedule s;
        struct err e = { "" };
        enum status st = schedule_build(&s, m->name, m->pp, m->chunks, m->mbs, &e);

        tap_ok(st == E_INPUT && strstr(e.text, refusals[i].says), "refused: %s", e.text);
        schedule_free(&s);
    }
}

/* Costs by stage and of transfers, against sums by hand. */
static void test_costs(void)
{
    static const double f[] = { 2, 7 }, in[] = { 3, 11 }, w[] = { 5, 13 };
    struct schedule_cost cost = { f, in, w, 0.25 };
    struct schedule s = build((struct make){ "gpipe", 2, 1, 1 });
    struct schedule_report r = schedule_simulate(&s, &cost);

    tap_ok(near(r.makespan, 2 + 0.25 + 7 + 24 + 0.25 + 8) && near(r.work, 31),
           "one micro-batch goes down and up: %g, work %g", r.makespan, r.work);
    schedule_free(&s);
    s = build((struct make){ "zb-h1", 2, 1, 1 });
    r = schedule_simulate(&s, &cost);
    tap_ok(near(r.makespan, 2 + 0.25 + 7 + 11 + 13), "the weight half of stage 1 ends last: %g",
           r.makespan);
    tap_ok(near(r.bubble, 1 - 41 / (2 * r.makespan)), "bubble %g", r.bubble);
    schedule_free(&s);
}

static enum status lower_again(struct schedule *s, const struct schedule_kind *kind, int spoil)
{
    int n = s->mbs * s->chunks * kind->per_mb, cap[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    struct step *order = mem_take((size_t)n * s->pp * sizeof *order), *last = order + n * s->pp - 1;
    struct err e = { "" };
    enum status st;

    for (int r = 0; r < s->pp; r++)
        kind->generate(s, r, order + (int64_t)r * n);
    if (spoil)
        order[0] = *last;
    mem_give(s->list[0]);
    st = schedule_lower(s, order, n, cap, &e);
    if (st == OK)
        st = schedule_place_slots(s, &e);
    mem_give(order);
    return st;
}

/* Too few slots are raised; an order that waits for itself is found. */
static void test_orders(void)
{
    struct schedule s = build((struct make){ "interleaved", 4, 2, 8 });
    int slots = s.slots[0];

    tap_ok(lower_again(&s, &schedule_kinds[3], 0) == OK && schedule_simulate(&s, NULL).ok &&
               s.slots[0] <= slots,
           "slots are raised to what the order needs: %d", s.slots[0]);
    tap_ok(lower_again(&s, &schedule_kinds[3], 1) == E_BUG, "an order that cannot run is found");
    schedule_free(&s);
}

int main(void)
{
    tap_plan(2 * COUNT_OF(theory) + 4 + COUNT_OF(texts) + COUNT_OF(refusals) + 3 + 2);
    test_theory();
    test_slots();
    test_texts();
    test_refusals();
    test_costs();
    test_orders();
    return tap_done();
}
