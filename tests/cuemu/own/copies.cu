/* copies.cu - asynchronous copies and matrix loads. */
#include "planted.h"

namespace
{

constexpr int STAGE = 64; /* floats */

/* A double buffer over n tiles: every thread sums the tile backwards. */
__global__ void stages(float *out, const float *x, int n, bool wait, bool barrier)
{
    SHARED_ARRAY(float, tile, 2 * STAGE);
    int t = (int)threadIdx.x;
    float sum = 0;

    if (t < 16)
        cp_async16(tile + t * 4, x + t * 4, true);
    cp_async_commit();
    for (int i = 0; i < n; i++) {
        const float *now = tile + i % 2 * STAGE;
        if (t < 16 && i + 1 < n)
            cp_async16(tile + (i + 1) % 2 * STAGE + t * 4, x + (i + 1) * STAGE + t * 4, true);
        cp_async_commit();
        if (wait)
            cp_async_wait<1>();
        else
            cp_async_wait<2>();
        __syncthreads();
        for (int j = STAGE - 1; j >= 0; j--)
            sum += now[j];
        if (barrier)
            __syncthreads();
    }
    cp_async_wait<0>();
    out[t] = sum;
}

bool stages_right(bool wait, bool barrier)
{
    buffer<float> x(4 * STAGE), out(64);
    stream q;

    for (size_t i = 0; i < x.host.size(); i++)
        x.host[i] = (float)i;
    x.put();
    LAUNCH(stages, dim3(1), dim3(64), 0, q.s, out.device, x.device, 4, wait, barrier);
    for (float v : out.get())
        if (v != 32640)
            return false;
    return true;
}

bool copy_wait(bool bug)
{
    return stages_right(!bug, true);
}

bool copy_refill(bool bug)
{
    return stages_right(true, !bug);
}

enum copy_bug { NONE, NO_WAIT, MISALIGNED, OUTSIDE, SOURCE };

/* 17 * 16 bytes are there: the last of 17 copies is zeros, or reads past the end. */
__global__ void copy_one(float *out, const float *x, int bug)
{
    SHARED_ARRAY(float, s, 17 * 4);
    int t = (int)threadIdx.x;

    if (t < 17) {
        float *to = s + t * 4 + (bug == MISALIGNED ? 1 : bug == OUTSIDE ? 4 : 0);
        cp_async16(to, x + t * 4, t < 16 || bug == SOURCE);
    }
    cp_async_commit();
    if (bug != NO_WAIT)
        cp_async_wait<0>();
    __syncthreads();
    out[t] = s[t];
}

bool copy_one_right(int bug)
{
    buffer<float> x(64), out(32);
    stream q;

    x.host.assign(64, 5);
    x.put();
    LAUNCH(copy_one, dim3(1), dim3(32), 0, q.s, out.device, x.device, bug);
    return out.get()[31] == 5;
}

bool copy_never_waited(bool bug)
{
    return copy_one_right(bug ? NO_WAIT : NONE);
}

bool copy_misaligned(bool bug)
{
    return copy_one_right(bug ? MISALIGNED : NONE);
}

bool copy_outside(bool bug)
{
    return copy_one_right(bug ? OUTSIDE : NONE);
}

bool copy_source(bool bug)
{
    return copy_one_right(bug ? SOURCE : NONE);
}

/* Reads the matrices of 32 rows of 16 bytes, the last row shifted by a bug. */
__global__ void matrices(uint32_t *out, int shift)
{
    SHARED_ARRAY(unsigned char, s, 32 * 16);
    uint32_t r[4];
    int lane = (int)threadIdx.x;

    for (int i = 0; i < 16; i++)
        s[lane * 16 + i] = (unsigned char)lane;
    __syncwarp();
    ldmatrix_x4(r, s + lane * 16 + (lane == 31 ? shift : 0));
    out[lane] = r[3];
}

bool matrices_right(int shift)
{
    buffer<uint32_t> out(32);
    stream q;

    LAUNCH(matrices, dim3(1), dim3(32), 0, q.s, out.device, shift);
    return out.get()[0] == 0x18181818 && out.host[31] == 0x1f1f1f1f;
}

bool matrix_misaligned(bool bug)
{
    return matrices_right(bug ? -8 : 0);
}

bool matrix_outside(bool bug)
{
    return matrices_right(bug ? 16 : 0);
}

} // namespace

const std::vector<planted> planted_copies = {
    { "copy_wait", copy_wait },
    { "copy_refill", copy_refill },
    { "copy_never_waited", copy_never_waited },
    { "copy_misaligned", copy_misaligned },
    { "copy_outside", copy_outside },
    { "copy_source", copy_source },
    { "matrix_misaligned", matrix_misaligned },
    { "matrix_outside", matrix_outside },
};
