/* The simulator proves every list for pp <= 32, M <= 256, v <= 8: that it runs, and that makespan
 * and slots are those of theory. Under a sanitizer, a sample. */
#include "base/clock.h"
#include "schedule/lists.h"
#include "tests/tap.h"

#include <math.h>

enum { PP_MAX = 32, MBS_MAX = 256, CHUNKS_MAX = 8 };
#ifdef __SANITIZE_ADDRESS__
enum { EVERY = 23 };
#else
enum { EVERY = 1 };
#endif

struct result {
    long lists, actions, wrong;
};

/* F = I = W = 1: what no order of its kind can beat. */
static double theory_gpipe(int pp, int chunks, int mbs)
{
    return 3.0 * mbs + 3.0 * (pp - 1) / chunks;
}

/* The last rank never idles, or the first waits for the first gradient and then has M - 1 I and M
 * W. */
static double theory_zb_h1(int pp, int chunks, int mbs)
{
    (void)chunks;
    return fmax(3 * mbs + pp - 1, 2 * mbs + 2 * pp - 1);
}

static int most_gpipe(int pp, int chunks, int mbs, int rank)
{
    (void)pp, (void)rank;
    return chunks * mbs;
}

static int most_1f1b(int pp, int chunks, int mbs, int rank)
{
    return (int)min_i64(pp - rank, (int64_t)chunks * mbs);
}

static int most_zb_h1(int pp, int chunks, int mbs, int rank)
{
    (void)rank;
    return (int)min_i64(pp, (int64_t)chunks * mbs);
}

/* One more where receives come early; a rank alone moves its activations instead. */
static int most_interleaved(int pp, int chunks, int mbs, int rank)
{
    int live = 2 * (pp - 1 - rank) + (chunks - 1) * pp + 1 + (rank > 0 || pp == 1);

    return (int)min_i64(live, (int64_t)chunks * mbs);
}

static const struct kind {
    const char *name;
    int chunks_from, chunks_to;
    double (*makespan)(int pp, int chunks, int mbs);
    int (*slots)(int pp, int chunks, int mbs, int rank);
    int forward; /* also the forward-only list over these slots */
} kinds[] = {
    { "gpipe", 1, 1, theory_gpipe, most_gpipe, 0 },
    { "1f1b", 1, 1, theory_gpipe, most_1f1b, 1 },
    { "zb-h1", 1, 1, theory_zb_h1, most_zb_h1, 0 },
    { "interleaved", 2, CHUNKS_MAX, theory_gpipe, most_interleaved, 1 },
};

static int fault(const struct schedule *s, const char *what, const char *why)
{
    printf("# %s, pp %d, v %d, M %d: %s %s\n", s->name, s->pp, s->chunks, s->mbs, what, why);
    return 1;
}

static int64_t actions_of(const struct schedule *s)
{
    int64_t n = 0;

    for (int r = 0; r < s->pp; r++)
        n += s->n[r];
    return n;
}

static int forward_wrong(const struct schedule *s, struct result *sum)
{
    struct schedule f;
    struct err e = { "" };
    int wrong = 0;

    if (schedule_build_forward(&f, s, s->mbs, &e) != OK)
        return fault(s, "forward", e.text);
    sum->lists++;
    sum->actions += actions_of(&f);
    for (int r = 0; r < s->pp && !wrong; r++)
        wrong = f.slots[r] > min_i64(2, s->slots[r]) && fault(&f, "forward", "slots");
    schedule_free(&f);
    return wrong;
}

static int wrong(const struct kind *k, int pp, int chunks, int mbs, struct result *sum)
{
    struct schedule s;
    struct schedule_report r;
    struct err e = { "" };
    int bad = 0;

    if (schedule_make(&s, k->name, pp, chunks, mbs, &e) != OK)
        return printf("# %s\n", e.text);
    r = schedule_simulate(&s, NULL);
    sum->lists++;
    sum->actions += actions_of(&s);
    if (!r.ok)
        bad = fault(&s, "", r.why);
    else if (fabs(r.makespan - k->makespan(pp, chunks, mbs)) > 1e-9 * r.makespan)
        bad = fault(&s, "makespan", "");
    for (int i = 0; i < pp && !bad; i++)
        if (s.slots[i] > k->slots(pp, chunks, mbs, i))
            bad = fault(&s, "slots", "");
    if (!bad && k->forward)
        bad = forward_wrong(&s, sum);
    schedule_free(&s);
    return bad != 0;
}

int main(void)
{
    double begin = clock_now();

    tap_plan(COUNT_OF(kinds));
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        const struct kind *k = &kinds[i];
        int step_all = k->chunks_to - k->chunks_from + 1;
        long lists = 0, actions = 0, bad = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : lists, actions, bad)
        for (int n = PP_MAX * step_all - 1; n >= 0; n--) {
            int pp = n / step_all + 1, chunks = k->chunks_from + n % step_all;
            int step = k->chunks_to > 1 ? pp : 1;
            struct result sum = { 0 };
            for (int m = step; m <= MBS_MAX; m += step)
                if ((n + m / step) % EVERY == 0)
                    sum.wrong += wrong(k, pp, chunks, m, &sum);
            lists += sum.lists;
            actions += sum.actions;
            bad += sum.wrong;
        }
        tap_ok(lists > 0 && bad == 0, "%s: %ld lists, %ld actions, %ld wrong; %.1f s so far",
               k->name, lists, actions, bad, clock_now() - begin);
    }
    return tap_done();
}
