#include "base/dtype.h"

#include "base/err.h"
#include "base/rng.h"
#include "tests/tap.h"

#include <math.h>

static const struct format {
    enum dtype type;
    int exponent_bits, fraction_bits;
} formats[] = { { BF16, 8, 7 }, { F16, 5, 10 } };

static uint16_t from_f64(double x, enum dtype t)
{
    uint16_t h, one = t == BF16 ? dtype_f64_to_bf16(x) : dtype_f64_to_f16(x);

    dtype_convert(&h, t, &x, F64, 1);
    if (h != one)
        die(E_BUG, "%a becomes %x alone and %x in an array", x, one, h);
    return h;
}

static double to_f64(uint16_t h, enum dtype t)
{
    double x;

    dtype_convert(&x, F64, &h, t, 1);
    return x;
}

/* By the definition of the format, with ldexp. */
static double meaning(uint16_t h, const struct format *f)
{
    int sign = h >> 15, e = h >> f->fraction_bits & ((1 << f->exponent_bits) - 1);
    int m = h & ((1 << f->fraction_bits) - 1), bias = (1 << (f->exponent_bits - 1)) - 1;
    double x;

    if (e == (1 << f->exponent_bits) - 1)
        x = m ? NAN : INFINITY;
    else if (e == 0)
        x = ldexp(m, 1 - bias - f->fraction_bits);
    else
        x = ldexp(m + (1 << f->fraction_bits), e - bias - f->fraction_bits);
    return sign ? -x : x;
}

static int same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void test_all_values(const struct format *f)
{
    int right = 0, back = 0, narrow = 0;

    for (int h = 0; h < 65536; h++) {
        double x = to_f64((uint16_t)h, f->type);
        float y = f->type == BF16 ? dtype_bf16_to_f32((uint16_t)h) : dtype_f16_to_f32((uint16_t)h);
        uint16_t z = f->type == BF16 ? dtype_f32_to_bf16(y) : dtype_f32_to_f16(y);

        right += same(x, meaning((uint16_t)h, f)) && same(x, y);
        back += isnan(x) ? isnan(to_f64(from_f64(x, f->type), f->type)) : from_f64(x, f->type) == h;
        narrow += isnan(x) ? isnan(to_f64(z, f->type)) : z == h;
    }
    tap_ok(right == 65536, "%s: %d of 65536 values mean what they should", dtype_name(f->type),
           right);
    tap_ok(back == 65536, "%s: %d of 65536 values return from float64", dtype_name(f->type), back);
    tap_ok(narrow == 65536, "%s: %d of 65536 values return from float32", dtype_name(f->type),
           narrow);
}

/* Between every two neighbours: the tie goes to the even one, one step beside it to the nearer. */
static void test_rounding(const struct format *f)
{
    uint16_t inf = (uint16_t)(((1 << f->exponent_bits) - 1) << f->fraction_bits);
    int bad = 0;

    for (uint16_t h = 0; h < inf; h++) {
        double a = meaning(h, f), b = meaning((uint16_t)(h + 1), f), tie;

        if (h + 1 == inf)
            b = 2 * a - meaning((uint16_t)(h - 1), f); /* where the next one would be */
        tie = a + (b - a) / 2;
        bad += from_f64(tie, f->type) != h + (h & 1);
        bad += from_f64(nextafter(tie, 0), f->type) != h;
        bad += from_f64(nextafter(tie, INFINITY), f->type) != h + 1;
        bad += from_f64(-tie, f->type) != (0x8000 | (h + (h & 1)));
        if ((double)(float)tie == tie) {
            float t = (float)tie;
            uint16_t got = f->type == BF16 ? dtype_f32_to_bf16(t) : dtype_f32_to_f16(t);

            bad += got != h + (h & 1);
        }
    }
    tap_ok(bad == 0, "%s: every tie and its neighbours (%d wrong)", dtype_name(f->type), bad);
    tap_ok(from_f64(5e-324, f->type) == 0 && from_f64(-5e-324, f->type) == 0x8000 &&
               from_f64(1e308, f->type) == inf && from_f64(-INFINITY, f->type) == (0x8000 | inf),
           "%s: the ends of float64", dtype_name(f->type));
}

/* All pairs of float types against the route over float64. */
static void test_pairs(void)
{
    static const enum dtype all[] = { F32, F64, BF16, F16 };
    enum { N = 1000 };
    double src[N], mid[N], want[N], got[N];
    int bad = 0;

    for (int i = 0; i < N; i++)
        src[i] = ldexp(rng_normal(1, 2, (uint64_t)i), i % 50 - 25);
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            char x[N * 8], y[N * 8], z[N * 8];

            dtype_convert(x, all[a], src, F64, N);
            dtype_convert(y, all[b], x, all[a], N);
            dtype_convert(mid, F64, x, all[a], N);
            dtype_convert(z, all[b], mid, F64, N);
            dtype_convert(got, F64, y, all[b], N);
            dtype_convert(want, F64, z, all[b], N);
            for (int i = 0; i < N; i++)
                bad += !same(got[i], want[i]);
        }
    tap_ok(bad == 0, "16 pairs of types agree with the route over float64 (%d wrong)", bad);
}

static void test_overflow(void)
{
    float f[] = { 1, INFINITY, NAN, 65519.f, 65520.f, 1e9f };
    double d[] = { 1, 3.5e38, 1e300 };
    uint16_t h[6];
    float g[3];

    tap_ok(dtype_convert(h, F16, f, F32, 6) == 4 && h[3] == 0x7bff && h[4] == 0x7c00,
           "float16 overflows at 65520, infinity is no overflow");
    tap_ok(dtype_convert(g, F32, d, F64, 3) == 1, "float32 overflows");
    f[3] = 3.4e38f;
    tap_ok(dtype_convert(h, BF16, f, F32, 4) == 3, "bfloat16 overflows");
    tap_ok(dtype_convert(h, BF16, f, F32, 3) == -1, "nothing overflows");
}

static void test_names(void)
{
    int good = 1;

    for (int t = 0; t < DTYPE_N; t++)
        good = good && dtype_from_name(dtype_name((enum dtype)t)) == t &&
               dtype_size((enum dtype)t) > 0;
    tap_ok(good, "names");
    tap_ok(dtype_from_name("float8") == -1 && dtype_is_float(F16) && !dtype_is_float(U16) &&
               dtype_size(U16) == 2,
           "kinds");
}

/* Doubles so close to a tie that float32 would round them onto it, and the tie then to the even
 * neighbour: the wrong one on one side. Normal, subnormal, at the ends. */
static void test_rounded_once(const struct format *f)
{
    uint16_t inf = (uint16_t)(((1 << f->exponent_bits) - 1) << f->fraction_bits);
    const uint16_t at[] = { 0,
                            1,
                            2,
                            (uint16_t)((1 << f->fraction_bits) - 1), /* the last subnormal */
                            (uint16_t)(1 << f->fraction_bits),
                            from_f64(1, f->type),
                            (uint16_t)(from_f64(1, f->type) + 1),
                            (uint16_t)(inf - 1) };
    int bad = 0, tells = 0;

    for (int i = 0; i < COUNT_OF(at); i++) {
        double a = meaning(at[i], f), step = a - meaning((uint16_t)(at[i] - 1), f), tie;

        if (at[i] < inf - 1)
            step = meaning((uint16_t)(at[i] + 1), f) - a;
        tie = a + step / 2;
        for (int side = -1; side <= 1; side += 2) {
            double x = tie + side * step * 0x1p-30;
            float twice = (float)x;
            uint16_t want = (uint16_t)(at[i] + (side > 0));
            uint16_t wrong = f->type == BF16 ? dtype_f32_to_bf16(twice) : dtype_f32_to_f16(twice);

            bad += from_f64(x, f->type) != want || from_f64(-x, f->type) != (0x8000 | want);
            tells += wrong != want;
        }
    }
    tap_ok(bad == 0 && tells >= COUNT_OF(at) - 1,
           "%s: rounded once, not twice (%d wrong; %d cases where twice is wrong)",
           dtype_name(f->type), bad, tells);
    tap_ok(isnan(to_f64(from_f64(NAN, f->type), f->type)) && from_f64(1e39, f->type) == inf,
           "%s: NaN stays NaN, what float32 cannot hold is infinite", dtype_name(f->type));
}

int main(void)
{
    tap_plan(21);
    for (int i = 0; i < COUNT_OF(formats); i++) {
        test_all_values(&formats[i]);
        test_rounding(&formats[i]);
        test_rounded_once(&formats[i]);
    }
    test_pairs();
    test_overflow();
    test_names();
    return tap_done();
}
