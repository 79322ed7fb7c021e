/* Mixtures: the interleave's laws, and the stream of samples of several sources in stages. */
#include "data/mixture.h"

#include <math.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "tests/tap.h"

static char dir[64] = "/tmp/pretrain-mixture.XXXXXX";
static struct err err;

static int holds(enum status st)
{
    if (st != OK)
        printf("# status %d: %s\n", (int)st, err.text);
    err.text[0] = '\0';
    return st == OK;
}

/* ---- weights ---- */

static void test_round(void)
{
    static const double thirds[] = { 1, 1, 1 }, halves[] = { 0.5, 0.25, 0.25 }, one[] = { 7 };
    static const double tiny[] = { 1, 1e-6 }, zero[] = { 0, 3, 0, 1 };
    int u[INTERLEAVE_SOURCES];

    tap_ok(interleave_round(thirds, 3, u) == -1 && u[0] == 21846 && u[1] == 21845 && u[2] == 21845,
           "thirds: the first of equals has one more");
    tap_ok(interleave_round(halves, 3, u) == -1 && u[0] == 32768 && u[1] == 16384, "exact weights");
    tap_ok(interleave_round(one, 1, u) == -1 && u[0] == 65536, "one source has all");
    tap_ok(interleave_round(zero, 4, u) == -1 && u[0] == 0 && u[1] == 49152 && u[3] == 16384,
           "weight 0 stays 0");
    tap_ok(interleave_round(tiny, 2, u) == 1, "a weight that would vanish is reported");
}

/* ---- the interleave ---- */

/* Every prefix of two periods: each source within one of its weight x draws, counts as told. */
static int law_holds(const struct interleave *x, const int *units, int n, double *worst)
{
    int64_t done[INTERLEAVE_SOURCES] = { 0 };

    for (int64_t t = 0; t < 2 * (int64_t)x->period; t++) {
        int64_t before;
        int i = interleave_draw(x, t, &before);

        if (i < 0 || i >= n || units[i] == 0 || before != done[i]++)
            return 0;
        for (int k = 0; k < n; k++) {
            double off =
                fabs((double)done[k] - (double)units[k] / INTERLEAVE_UNIT * (double)(t + 1));

            *worst = off > *worst ? off : *worst;
        }
    }
    for (int k = 0; k < n; k++)
        if (done[k] != 2 * x->count[k] || interleave_count(x, 2 * x->period, k) != done[k])
            return 0;
    return 1;
}

static void test_law(void)
{
    int rounds = getenv("PRETRAIN_SOAK") ? 400 : 40, good = 1; /* soak 400, CI 40 */
    double worst = 0;

    for (int r = 0; r < rounds && good; r++) {
        int n = 1 + (int)(rng_u64(1, 2, (uint64_t)r) % INTERLEAVE_SOURCES);
        double w[INTERLEAVE_SOURCES];
        int units[INTERLEAVE_SOURCES];
        struct interleave x;

        for (int i = 0; i < n; i++) { /* of very different sizes, some 0 */
            uint64_t u = rng_u64(3, (uint64_t)r, (uint64_t)i);

            w[i] = i && u % 7 == 0 ? 0 : exp((double)(u >> 40) / (1 << 24) * (r % 2 ? 7 : 1));
        }
        if (interleave_round(w, n, units) >= 0)
            continue;
        interleave_make(&x, units, n);
        good = law_holds(&x, units, n, &worst);
        interleave_free(&x);
    }
    tap_ok(good && worst < 1, "%d random mixtures: every prefix within one draw, at most %.5f off",
           rounds, worst);
}

static void test_period(void)
{
    static const int quarters[] = { 49152, 16384 }, alone[] = { 65536 };
    static const unsigned char want[] = { 0, 0, 0, 1 };
    struct interleave x;

    interleave_make(&x, quarters, 2);
    tap_ok(x.period == 4 && memcmp(x.source, want, 4) == 0, "3 : 1 has a period of 4: 0 0 0 1");
    interleave_free(&x);
    interleave_make(&x, alone, 1);
    tap_ok(x.period == 1, "one source: a period of 1");
    interleave_free(&x);
}

/* ---- sources ---- */

/* File i holds ids 10000 i + (position mod 10000): a token tells where it comes from. */
static void make(const char *name, int64_t n, int base)
{
    char path[128];
    struct tokens_writer *w;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    tokens_writer_open(&w, path, 65536, -1, NULL, 0, &err);
    for (int64_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)(base + i % 10000);

        tokens_writer_add(w, &id, 1, &err);
    }
    holds(tokens_writer_close(w, &err));
}

static struct mixture_source source(const char *name, const char *file)
{
    static char paths[16][128];
    static const char *list[16];
    static int turn;
    struct mixture_source s = { .npaths = 1, .stated = { -1, -1 } };

    turn = (turn + 1) % 16;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", dir, file);
    list[turn] = paths[turn];
    s.paths = &list[turn];
    snprintf(s.name, sizeof s.name, "%s", name);
    return s;
}

static int same_draw(struct mixture_draw a, struct mixture_draw b)
{
    return a.sample == b.sample && !strcmp(a.corpus->file[0].path, b.corpus->file[0].path) &&
           a.corpus->S == b.corpus->S;
}

/* a: 100 samples of 8, b: 37, c: 11. */
static void test_epochs(void)
{
    struct mixture_source s[] = { source("a", "a.h5"), source("b", "b.h5"), source("c", "c.h5") };
    static const double w[] = { 0.5, 0.3, 0.2 };
    struct mixture_stage stage = { 0, 8, w };
    int seen[3][100] = { { 0 } }, good, samples[] = { 100, 37, 11 };
    struct mixture m;

    good = holds(mixture_open(&m, s, 3, &stage, 1, 7, 1, &err));
    for (int64_t n = 0; n < 4000 && good; n++) {
        struct mixture_draw d = mixture_draw(&m, n);
        int64_t count = mixture_count(&m, d.source, n);

        good = d.stage == 0 && d.sample >= 0 && d.sample < samples[d.source] &&
               /* in each epoch each sample once */
               seen[d.source][d.sample]++ == count / samples[d.source];
    }
    tap_ok(good, "each source goes through all of its samples before it repeats one");
    tap_ok(good && fabs(mixture_epochs(&m, 2, 4000) - 4000 * 0.2 / 11) < 0.2,
           "epochs are counted by source");
    mixture_close(&m);
}

static void test_order(void)
{
    struct mixture_source ab[] = { source("a", "a.h5"), source("b", "b.h5") };
    struct mixture_source ba[] = { source("b", "b.h5"), source("a", "a.h5") };
    struct mixture_source more[] = { ab[0], source("aa", "c.h5"), ab[1] };
    static const double w[] = { 1, 1 }, w3[] = { 1, 0, 1 };
    struct mixture_stage stage = { 0, 8, w }, stage3 = { 0, 8, w3 };
    struct mixture x, y, z;
    int good = 1, differs = 0;

    holds(mixture_open(&x, ab, 2, &stage, 1, 7, 1, &err));
    holds(mixture_open(&y, ba, 2, &stage, 1, 7, 1, &err));
    holds(mixture_open(&z, more, 3, &stage3, 1, 7, 1, &err));
    for (int64_t n = 0; n < 1000; n++) {
        good &= same_draw(mixture_draw(&x, n), mixture_draw(&y, n)) &&
                same_draw(mixture_draw(&x, n), mixture_draw(&z, n));
        differs |= mixture_draw(&x, n).sample != n % 100;
    }
    tap_ok(good && differs, "the order of the sources, and one that is not used, mean nothing");
    mixture_close(&x);
    mixture_close(&y);
    mixture_close(&z);
}

static void test_alone(void)
{
    struct mixture_source s = source("", "a.h5");
    static const double w[] = { 1 };
    struct mixture_stage stage = { 0, 8, w };
    struct mixture m;
    int good = holds(mixture_open(&m, &s, 1, &stage, 1, 42, 1, &err));

    for (int64_t n = 0; n < 1000 && good; n++)
        good = mixture_draw(&m, n).sample == sampler_index(&m.stage[0].part[0].view, 42, 1, n);
    tap_ok(good, "a nameless source alone: the order of the seed");
    mixture_close(&m);
}

static void test_stages(void)
{
    struct mixture_source s[] = { source("a", "a.h5"), source("b", "b.h5") };
    static const double first[] = { 3, 1 }, last[] = { 0, 1 };
    struct mixture_stage stages[] = { { 0, 8, first }, { 40, 8, last }, { 50, 16, first } };
    struct mixture m, alone;
    int good = holds(mixture_open(&m, s, 2, stages, 3, 7, 0, &err)) &&
               holds(mixture_open(&alone, s, 2, stages, 1, 7, 0, &err));

    for (int64_t n = 0; n < 40 && good; n++)
        good = same_draw(mixture_draw(&m, n), mixture_draw(&alone, n));
    tap_ok(good, "what comes later does not change what was before");
    for (int64_t n = 40; n < 50 && good; n++) {
        struct mixture_draw d = mixture_draw(&m, n);

        good = d.stage == 1 && d.source == 1 && d.sample == 10 + n - 40;
    }
    tap_ok(good, "10 of 40 were b's: it goes on with its sample 10");
    /* then b has had 20 samples of 8 = 160 tokens, a 30 = 240: 10 and 15 samples of 16 */
    good = good && mixture_draw(&m, 50).source == 0 && mixture_draw(&m, 50).sample == 15 &&
           mixture_draw(&m, 53).source == 1 && mixture_draw(&m, 53).sample == 10 &&
           mixture_draw(&m, 53).corpus->S == 16;
    tap_ok(good, "in a stage of other lengths it goes on by tokens");
    mixture_close(&m);
    mixture_close(&alone);
}

/* Seeking costs nothing: what matters is that it does not grow with n. */
static void test_seek(void)
{
    enum { DRAWS = 1000 };
    struct mixture_source s[] = { source("a", "a.h5"), source("b", "b.h5"), source("c", "c.h5") };
    static const double w[] = { 0.611, 0.29, 0.099 };
    struct mixture_stage stages[] = { { 0, 8, w }, { 1000000, 8, w } };
    int32_t row[5][8];
    struct batch_rows b = { row[0], row[1], row[2], row[3], row[4] };
    struct mixture m;
    double seconds[2];
    int good = holds(mixture_open(&m, s, 3, stages, 2, 7, 1, &err));

    for (int far = 0; far < 2; far++) {
        double start = clock_now();

        for (int64_t n = 0; n < DRAWS && good; n++) {
            struct mixture_draw d = mixture_draw(&m, (far ? 1000000000 : 0) + n);

            good = batch_fill(d.corpus, &b, 0, d.sample, 0, 0, &err) == OK;
        }
        seconds[far] = (clock_now() - start) / DRAWS;
    }
    tap_ok(good && seconds[1] < 0.01, "a sample at 1,000,000,000 comes in %.1f us, at 0 in %.1f us",
           1e6 * seconds[1], 1e6 * seconds[0]);
    mixture_close(&m);
}

static void test_refused(void)
{
    struct mixture_source s[] = { source("a", "a.h5"), source("small", "small.h5") };
    struct mixture_source odd[] = { source("a", "a.h5"), source("odd", "odd.h5") };
    static const double w[] = { 1, 1 }, tiny[] = { 1, 1e-9 };
    struct mixture_stage stage = { 0, 8, w }, lost = { 0, 8, tiny };
    struct tokens_writer *t;
    struct mixture m;
    char path[128];

    make("small.h5", 8, 0);
    snprintf(path, sizeof path, "%s/odd.h5", dir);
    tokens_writer_open(&t, path, 300, -1, NULL, 0, &err);
    for (uint32_t i = 0; i < 100; i++)
        tokens_writer_add(t, &i, 1, &err);
    holds(tokens_writer_close(t, &err));
    tap_ok(mixture_open(&m, s, 2, &stage, 1, 7, 1, &err) == E_FILE &&
               strstr(err.text, "small.h5: 8 tokens are too few"),
           "%s", err.text);
    err.text[0] = '\0';
    tap_ok(mixture_open(&m, odd, 2, &stage, 1, 7, 1, &err) == E_FILE &&
               strstr(err.text, "vocabulary size 300"),
           "%s", err.text);
    err.text[0] = '\0';
    tap_ok(mixture_open(&m, odd, 2, &lost, 1, 7, 1, &err) != OK, "%s", err.text);
    err.text[0] = '\0';
    s[1] = source("b", "b.h5");
    tap_ok(mixture_open(&m, s, 2, &lost, 1, 7, 1, &err) == E_INPUT &&
               strstr(err.text, "source 'b': its weight, 1e-09, is less than 1/65536"),
           "%s", err.text);
    err.text[0] = '\0';
}

int main(void)
{
    tap_plan(5 + 3 + 2 + 1 + 1 + 3 + 1 + 4);
    if (!mkdtemp(dir))
        return 1;
    make("a.h5", 801, 0);
    make("b.h5", 37 * 8 + 1, 10000);
    make("c.h5", 11 * 8 + 1, 20000);
    test_round();
    test_law();
    test_period();
    test_epochs();
    test_order();
    test_alone();
    test_stages();
    test_seek();
    test_refused();
    file_remove_tree(dir, NULL);
    return tap_done();
}
