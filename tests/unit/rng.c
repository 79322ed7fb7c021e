/* Sizes: permutations up to 300 (soak: 3000), 200,000 normals (soak: 20 million). */
#include "base/rng.h"

#include "base/arena.h"
#include "tests/tap.h"

#include <math.h>

/* Known answers of Random123's kat_vectors for philox4x32-10: counter, key, result. */
static const struct {
    uint32_t counter[4], key[2], want[4];
} known[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static uint64_t two(const uint32_t *w)
{
    return (uint64_t)w[1] << 32 | w[0];
}

static void test_philox(void)
{
    for (int i = 0; i < COUNT_OF(known); i++) {
        uint32_t out[4];

        rng_philox(two(known[i].key), two(known[i].counter + 2), two(known[i].counter), out);
        tap_ok(memcmp(out, known[i].want, sizeof out) == 0, "known answer %d", i);
    }
    tap_ok(rng_u64(0, 0, 0) == UINT64_C(0xe169c58d6627e8d5), "64 bits of it");
}

/* The same draw by libm. */
static double normal_by_libm(uint64_t index)
{
    uint32_t w[4];
    double u, v;

    rng_philox(5, 6, index, w);
    u = ldexp((double)(two(w) >> 11) + 1, -53);
    v = ldexp((double)(two(w + 2) >> 11), -53);
    return sqrt(-2 * log(u)) * cos(2 * acos(-1.0) * v);
}

static void test_normal(void)
{
    int64_t n = tap_soak() ? 20000000 : 200000, beyond = 0;
    double sum = 0, squares = 0, cubes = 0, fourth = 0, worst = 0, scale = sqrt((double)n);

    for (int64_t i = 0; i < n; i++) {
        double x = rng_normal(5, 6, (uint64_t)i), off = fabs(x - normal_by_libm((uint64_t)i));

        worst = off > worst ? off : worst;
        beyond += fabs(x) > 1.959964;
        sum += x;
        squares += x * x;
        cubes += x * x * x;
        fourth += x * x * x * x;
    }
    tap_ok(worst < 4e-15, "libm says the same to %.1e", worst);
    /* five standard errors: of x 1, x^2 sqrt 2, x^3 sqrt 15, x^4 sqrt 96, of the share sqrt .0475
     */
    tap_ok(fabs(sum / scale) < 5, "mean %.2e", sum / (double)n);
    tap_ok(fabs(squares - (double)n) / scale < 5 * sqrt(2), "variance %.4f", squares / (double)n);
    tap_ok(fabs(cubes) / scale < 5 * sqrt(15), "third moment %.2e", cubes / (double)n);
    tap_ok(fabs(fourth - 3. * (double)n) / scale < 5 * sqrt(96), "fourth %.4f", fourth / (double)n);
    tap_ok(fabs((double)beyond - .05 * (double)n) / scale < 5 * sqrt(.0475),
           "5 %% are beyond 1.96");
}

static int is_bijection(uint64_t seed, uint64_t n)
{
    char *seen = mem_take(n);
    int good = 1;

    for (uint64_t i = 0; i < n && good; i++) {
        uint64_t p = rng_permute(seed, 9, n, i);

        good = p < n && !seen[p];
        if (good)
            seen[p] = 1;
    }
    mem_give(seen);
    return good;
}

static void test_permute(void)
{
    uint64_t most = tap_soak() ? 3000 : 300, bad = 0, moved = 0, count[5][5] = { { 0 } }, big;
    double chi = 0;

    for (uint64_t n = 1; n <= most; n++)
        bad += !is_bijection(n, n);
    tap_ok(bad == 0, "bijections of 1 .. %d", (int)most);
    tap_ok(is_bijection(1, 65536) && is_bijection(2, 65537) && is_bijection(3, 100003),
           "bijections around 2^16");
    for (uint64_t i = 0; i < 1000; i++)
        moved += rng_permute(1, 9, 1000, i) != rng_permute(2, 9, 1000, i);
    tap_ok(moved > 980, "another seed, another order");
    for (uint64_t seed = 0; seed < 5000; seed++)
        for (uint64_t i = 0; i < 5; i++)
            count[i][rng_permute(seed, 9, 5, i)]++;
    for (int i = 0; i < 25; i++)
        chi += pow((double)count[i / 5][i % 5] - 1000, 2) / 1000;
    tap_ok(chi < 45, "each place is as likely as any other (chi square %.1f, 16 degrees)", chi);
    big = UINT64_C(1) << 63;
    tap_ok(rng_permute(1, 9, big, big - 1) < big &&
               rng_permute(1, 9, big, 0) != rng_permute(1, 9, big, 1) &&
               rng_permute(1, 9, big - 5, big - 6) < big - 5,
           "2^63");
}

int main(void)
{
    tap_plan(4 + 6 + 5);
    test_philox();
    test_normal();
    test_permute();
    return tap_done();
}
