/* tensor.cc - tensor-core products, matrix loads and asynchronous copies. */
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "machine.h"

namespace cuemu
{
namespace
{

const unsigned ALL = 0xffffffffu;
enum { COPY_BYTES = 16 };

float element(uint32_t pair, int half, number type)
{
    unsigned short bits = (unsigned short)(half ? pair >> 16 : pair);

    return type == number::bf16 ? __bfloat162float(__ushort_as_bfloat16(bits))
                                : __half2float(__ushort_as_half(bits));
}

/* d[16x8] += a[16x16] b[16x8]. Lane l of group g = l / 4, t = l % 4 holds (PTX manual, "Matrix
 * Fragments for mma.m16n8k16"): a: rows g, g + 8, columns 2t, 2t + 1 and 8 more; b: rows 2t, 2t + 1
 * and 8 more, column g; d: rows g, g + 8, columns 2t, 2t + 1. */
void complete_mma(fiber *const *warp, number type)
{
    float a[16][16], b[16][8], d[16][8] = {};

    for (int l = 0; l < WARP; l++) {
        const uint32_t *fa = static_cast<const uint32_t *>(warp[l]->operands[1]);
        const uint32_t *fb = static_cast<const uint32_t *>(warp[l]->operands[2]);
        int g = l / 4, t = l % 4 * 2;
        for (int e = 0; e < 2; e++) {
            for (int i = 0; i < 4; i++)
                a[g + i % 2 * 8][t + i / 2 * 8 + e] = element(fa[i], e, type);
            for (int i = 0; i < 2; i++)
                b[t + i * 8 + e][g] = element(fb[i], e, type);
        }
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 8; j++)
                d[i][j] += a[i][k] * b[k][j];
    for (int l = 0; l < WARP; l++) {
        float *fd = static_cast<float *>(const_cast<void *>(warp[l]->operands[0]));
        for (int i = 0; i < 4; i++)
            fd[i] += d[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2];
    }
}

void complete_mma_bf16(fiber *const *warp, unsigned)
{
    complete_mma(warp, number::bf16);
}

void complete_mma_f16(fiber *const *warp, unsigned)
{
    complete_mma(warp, number::f16);
}

/* Lane l receives, of each matrix m, row l / 4, columns 2 (l % 4) and the next; transposed: of row
 * and column exchanged. Row i of matrix m is at the address that lane 8 m + i brought. */
void complete_ldmatrix(fiber *const *warp, bool transposed)
{
    for (int l = 0; l < WARP; l++) {
        char *r = static_cast<char *>(const_cast<void *>(warp[l]->operands[0]));
        for (int m = 0; m < 4; m++)
            for (int e = 0; e < 2; e++) {
                int row = l / 4, column = l % 4 * 2 + e;
                const fiber *holder = warp[m * 8 + (transposed ? column : row)];
                const char *p = static_cast<const char *>(holder->operands[1]);
                raw_copy(r + m * 4 + e * 2, p + (transposed ? row : column) * 2, 2);
            }
    }
}

void complete_ldmatrix_straight(fiber *const *warp, unsigned)
{
    complete_ldmatrix(warp, false);
}

void complete_ldmatrix_transposed(fiber *const *warp, unsigned)
{
    complete_ldmatrix(warp, true);
}

/* 16 bytes of shared memory, checked as the device or compute-sanitizer would. */
void check_shared(place where, const void *p, const char *misaligned, const char *outside)
{
    me->where = where;
    if (reinterpret_cast<uintptr_t>(p) % COPY_BYTES)
        stop(misaligned, me);
    if (!shared_contains(p, COPY_BYTES))
        stop(outside, me);
}

} // namespace

void mma(place where, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], number type)
{
    me->operands[0] = d;
    me->operands[1] = a;
    me->operands[2] = b;
    warp_meet(where, ALL, type == number::bf16 ? complete_mma_bf16 : complete_mma_f16);
}

void load_matrices(place where, bool transposed, uint32_t (&r)[4], const void *row)
{
    check_shared(where, row, "a row of ldmatrix is not 16-byte aligned",
                 "a row of ldmatrix is not inside shared memory");
    TSAN(__tsan_read_range(const_cast<void *>(row), COPY_BYTES);)
    me->operands[0] = r;
    me->operands[1] = row;
    warp_meet(where, ALL, transposed ? complete_ldmatrix_transposed : complete_ldmatrix_straight);
}

/* Done as late as the program allows: until the wait the target holds NaN. */
void copy_async(place where, void *to, const void *from, bool ok)
{
    check_shared(where, to, "the target of cp.async is not 16-byte aligned",
                 "the target of cp.async is not inside shared memory");
    if (reinterpret_cast<uintptr_t>(from) % COPY_BYTES)
        stop("the source of cp.async is not 16-byte aligned", me);
    if (me->copies == COPIES_MAX)
        stop("more asynchronous copies in flight than the emulation holds", me);
    ASAN(if (ok && __asan_region_is_poisoned(const_cast<void *>(from), COPY_BYTES))
             stop("the source of cp.async is out of bounds", me);)
    TSAN(__tsan_write_range(to, COPY_BYTES);)
    TSAN(if (ok) __tsan_read_range(const_cast<void *>(from), COPY_BYTES);)
    raw_fill(to, 0xff, COPY_BYTES);
    me->copy[me->copies++] = { to, ok ? from : nullptr };
}

void commit_copies(place where)
{
    me->where = where;
    if (me->groups == GROUPS_MAX)
        stop("more groups of asynchronous copies in flight than the emulation holds", me);
    me->group_end[me->groups++] = me->copies;
}

void wait_for_copies(int pending)
{
    int waited = me->groups - pending;
    if (waited <= 0)
        return;
    int n = me->group_end[waited - 1];
    for (int i = 0; i < n; i++) {
        const pending_copy &c = me->copy[i];
        TSAN(__tsan_write_range(c.to, COPY_BYTES);)
        if (c.from)
            raw_copy(c.to, c.from, COPY_BYTES);
        else
            raw_fill(c.to, 0, COPY_BYTES);
    }
    for (int i = n; i < me->copies; i++)
        me->copy[i - n] = me->copy[i];
    me->copies -= n;
    for (int i = waited; i < me->groups; i++)
        me->group_end[i - waited] = me->group_end[i] - n;
    me->groups -= waited;
}

} // namespace cuemu
