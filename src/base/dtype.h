/* Element types and their exact conversions (round to nearest even; never by HDF5). */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H
#include "base/types.h"

enum dtype { F32, F64, BF16, F16, I32, I64, U8, U16, U32, DTYPE_N };

size_t dtype_size(enum dtype t) LOCAL;
const char *dtype_name(enum dtype t) LOCAL;  /* "float32", "bfloat16", "int64", ... */
int dtype_from_name(const char *name) LOCAL; /* -1: unknown */
int dtype_is_float(enum dtype t) LOCAL;

uint16_t dtype_f32_to_bf16(float x) LOCAL; /* NaN stays NaN */
float dtype_bf16_to_f32(uint16_t h) LOCAL;
uint16_t dtype_f32_to_f16(float x) LOCAL; /* overflow gives infinity */
float dtype_f16_to_f32(uint16_t h) LOCAL;
/* Rounded once: not by way of F32, which would round a value just beside a tie onto it. */
uint16_t dtype_f64_to_bf16(double x) LOCAL;
uint16_t dtype_f64_to_f16(double x) LOCAL;

/* dst[i] = src[i], any two float types. Returns the index of the first finite value that
 * overflowed, or -1. */
int64_t dtype_convert(void *dst, enum dtype to, const void *src, enum dtype from, int64_t n) LOCAL;
#endif
