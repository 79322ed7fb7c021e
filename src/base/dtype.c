#include "base/dtype.h"

#include "base/err.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    int is_float;
} types[DTYPE_N] = {
    [F32] = { "float32", 4, 1 }, [F64] = { "float64", 8, 1 }, [BF16] = { "bfloat16", 2, 1 },
    [F16] = { "float16", 2, 1 }, [I32] = { "int32", 4, 0 },   [I64] = { "int64", 8, 0 },
    [U8] = { "uint8", 1, 0 },    [U16] = { "uint16", 2, 0 },  [U32] = { "uint32", 4, 0 },
};

size_t dtype_size(enum dtype t)
{
    return types[t].size;
}

const char *dtype_name(enum dtype t)
{
    return types[t].name;
}

int dtype_from_name(const char *name)
{
    for (int t = 0; t < DTYPE_N; t++)
        if (strcmp(types[t].name, name) == 0)
            return t;
    return -1;
}

int dtype_is_float(enum dtype t)
{
    return types[t].is_float;
}

/* A double as a narrower IEEE format with `eb` exponent and `mb` fraction bits, rounded once to
 * nearest even. */
static uint16_t narrow(double x, int eb, int mb)
{
    uint64_t u, sig, r, rest, half;
    uint32_t inf = ((1u << eb) - 1) << mb, sign;
    int e, shift = 52 - mb;

    memcpy(&u, &x, sizeof u);
    sign = (uint32_t)(u >> 63) << (eb + mb);
    sig = u & ((UINT64_C(1) << 52) - 1);
    e = (int)(u >> 52 & 0x7ff);
    if (e == 0x7ff) /* a NaN stays one: quiet bit set */
        return (uint16_t)(sign | inf | (sig ? 1u << (mb - 1) | (uint32_t)(sig >> shift) : 0));
    e += (1 << (eb - 1)) - 1 - 1023;
    if (e >= (1 << eb) - 1)
        return (uint16_t)(sign | inf);
    if (e < 1) { /* subnormal in the new format */
        shift += 1 - e;
        e = 1;
    }
    if (shift > 54) /* below half of the smallest: also double's own subnormals */
        return (uint16_t)sign;
    sig |= UINT64_C(1) << 52;
    r = sig >> shift;
    half = UINT64_C(1) << (shift - 1);
    rest = sig & (2 * half - 1);
    r += rest > half || (rest == half && (r & 1));
    r += (uint64_t)(e - 1) << mb; /* a carry moves into the exponent, up to infinity */
    return (uint16_t)(sign | r);
}

uint16_t dtype_f64_to_bf16(double x)
{
    return narrow(x, 8, 7);
}

uint16_t dtype_f64_to_f16(double x)
{
    return narrow(x, 5, 10);
}

uint16_t dtype_f32_to_bf16(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float dtype_bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

uint16_t dtype_f32_to_f16(float x)
{
    return dtype_f64_to_f16((double)x);
}

float dtype_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff, u;
    float x;

    if (e == 0) {
        x = (float)m * 0x1p-24f;
        return sign ? -x : x;
    }
    u = sign | (e == 31 ? 255 : e + 112) << 23 | m << 13;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Every float type fits a double exactly. */
static double load(const void *p, enum dtype t, int64_t i)
{
    switch (t) {
    case F32:
        return (double)((const float *)p)[i];
    case F64:
        return ((const double *)p)[i];
    case BF16:
        return (double)dtype_bf16_to_f32(((const uint16_t *)p)[i]);
    default:
        return (double)dtype_f16_to_f32(((const uint16_t *)p)[i]);
    }
}

/* Returns whether the stored value is finite. */
static int store(void *p, enum dtype t, int64_t i, double x)
{
    uint16_t h;

    switch (t) {
    case F32:
        ((float *)p)[i] = (float)x;
        return isfinite(((float *)p)[i]);
    case F64:
        ((double *)p)[i] = x;
        return isfinite(x);
    case BF16:
        ((uint16_t *)p)[i] = h = dtype_f64_to_bf16(x);
        return (h & 0x7f80) != 0x7f80;
    default:
        ((uint16_t *)p)[i] = h = dtype_f64_to_f16(x);
        return (h & 0x7c00) != 0x7c00;
    }
}

/* The pair that every mixed-precision step and export walks. */
static int64_t f32_to_bf16(uint16_t *dst, const float *src, int64_t n)
{
    int bad = 0;

    for (int64_t i = 0; i < n; i++) {
        dst[i] = dtype_f32_to_bf16(src[i]);
        bad |= (dst[i] & 0x7f80) == 0x7f80;
    }
    for (int64_t i = 0; bad && i < n; i++)
        if ((dst[i] & 0x7f80) == 0x7f80 && isfinite(src[i]))
            return i;
    return -1;
}

int64_t dtype_convert(void *dst, enum dtype to, const void *src, enum dtype from, int64_t n)
{
    int64_t bad = -1;

    BUG_IF(!dtype_is_float(to) || !dtype_is_float(from));
    if (to == from) {
        memmove(dst, src, (size_t)n * dtype_size(to));
        return -1;
    }
    if (from == F32 && to == BF16)
        return f32_to_bf16(dst, src, n);
    for (int64_t i = 0; i < n; i++) {
        double x = load(src, from, i);

        if (!store(dst, to, i, x) && bad < 0 && isfinite(x))
            bad = i;
    }
    return bad;
}
