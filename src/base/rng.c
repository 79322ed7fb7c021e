#include "base/rng.h"

#include "base/err.h"

#include <math.h>

/* Ten rounds of two 32x32-bit products; the key is bumped by the Weyl constants.
 * key = seed, counter = (index, what) */
void rng_philox(uint64_t seed, uint64_t what, uint64_t index, uint32_t out[4])
{
    uint32_t a = (uint32_t)index, b = (uint32_t)(index >> 32), c = (uint32_t)what,
             d = (uint32_t)(what >> 32), k = (uint32_t)seed, l = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;

        a = (uint32_t)(q >> 32) ^ b ^ k;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ l;
        d = (uint32_t)p;
        k += 0x9E3779B9u;
        l += 0xBB67AE85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

uint64_t rng_u64(uint64_t seed, uint64_t what, uint64_t index)
{
    uint32_t w[4];

    rng_philox(seed, what, index, w);
    return (uint64_t)w[1] << 32 | w[0];
}

/* log and cos of our own: libm's differ between processors in the last bit, initial weights may
 * not. The series of artanh(s)/s, cos x and (sin x)/x, highest power first, in s^2 or x^2. */
static const double artanh_series[] = { 1. / 25, 1. / 23, 1. / 21, 1. / 19, 1. / 17,
                                        1. / 15, 1. / 13, 1. / 11, 1. / 9,  1. / 7,
                                        1. / 5,  1. / 3,  1 };
static const double cos_series[] = { 1. / 20922789888000,
                                     -1. / 87178291200,
                                     1. / 479001600,
                                     -1. / 3628800,
                                     1. / 40320,
                                     -1. / 720,
                                     1. / 24,
                                     -1. / 2,
                                     1 };
static const double sin_series[] = { 1. / 355687428096000,
                                     -1. / 1307674368000,
                                     1. / 6227020800,
                                     -1. / 39916800,
                                     1. / 362880,
                                     -1. / 5040,
                                     1. / 120,
                                     -1. / 6,
                                     1 };

static double series(const double *c, int n, double z)
{
    double sum = c[0];

    for (int k = 1; k < n; k++)
        sum = sum * z + c[k];
    return sum;
}

/* x in (0, 1]: x = 2^e m with m in [1/sqrt 2, sqrt 2), log m = 2 artanh((m-1)/(m+1)). */
static double log_unit(double x)
{
    const double ln2 = 0.69314718055994530942;
    int e;
    double m = frexp(x, &e), s;

    if (m < 0.70710678118654752440) {
        m *= 2;
        e--;
    }
    s = (m - 1) / (m + 1);
    return (double)e * ln2 + 2 * s * series(artanh_series, COUNT_OF(artanh_series), s * s);
}

/* cos(2 pi u), u in [0, 1), folded to an eighth of the circle. */
static double cos_turn(double u)
{
    const double two_pi = 6.28318530717958647693;
    double a = u > 0.5 ? 1 - u : u, x, y; /* a in [0, 1/2] */
    int negative = a > 0.25;

    if (negative)
        a = 0.5 - a;
    if (a > 0.125) {
        x = two_pi * (0.25 - a);
        y = x * series(sin_series, COUNT_OF(sin_series), x * x);
    } else {
        x = two_pi * a;
        y = series(cos_series, COUNT_OF(cos_series), x * x);
    }
    return negative ? -y : y;
}

double rng_normal(uint64_t seed, uint64_t what, uint64_t index)
{
    const double ulp = 1.0 / 9007199254740992.0; /* 2^-53 */
    uint32_t w[4];
    uint64_t a, b;

    rng_philox(seed, what, index, w);
    a = ((uint64_t)w[1] << 32 | w[0]) >> 11;
    b = ((uint64_t)w[3] << 32 | w[2]) >> 11;
    return sqrt(-2 * log_unit((double)(a + 1) * ulp)) * cos_turn((double)b * ulp);
}

/* Two halves of `half` bits each; the round's function is Philox of (round, right half). */
static uint64_t feistel(uint64_t seed, uint64_t what, int half, uint64_t x)
{
    uint64_t mask = (UINT64_C(1) << half) - 1, left = x >> half, right = x & mask;

    for (uint64_t round = 0; round < 8; round++) {
        uint64_t next = left ^ (rng_u64(seed, what, round << 32 | right) & mask);

        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t rng_permute(uint64_t seed, uint64_t what, uint64_t n, uint64_t i)
{
    int half = 1;

    BUG_IF(n < 1 || i >= n || n > UINT64_C(1) << 63);
    if (n == 1)
        return 0;
    while (half < 32 && (n - 1) >> (2 * half))
        half++;
    do
        i = feistel(seed, what, half, i); /* the walk returns to 0..n-1: it is on a cycle */
    while (i >= n);
    return i;
}
