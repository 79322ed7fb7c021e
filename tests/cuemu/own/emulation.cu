/* emulation.cu - the language of kernels; and main. */
#include "emulation.h"
#include "tests/tap.h"

namespace
{

constexpr unsigned ALL = 0xffffffffu;

/* Every number is exact; between two neighbours the nearer is taken, half way the even one. */
template <class T>
bool rounds(T (*from)(float), float (*to)(T), T (*of_bits)(unsigned short),
            unsigned short (*bits)(T), unsigned infinity)
{
    for (unsigned i = 0; i < infinity; i++) {
        double low = (double)to(of_bits((unsigned short)i));
        double high = (double)to(of_bits((unsigned short)(i + 1)));
        if (i + 1 == infinity) /* where the next number would be */
            high = low + (low - (double)to(of_bits((unsigned short)(i - 1))));
        float middle = (float)((low + high) / 2);
        if (bits(from((float)low)) != i || bits(from((float)-low)) != (i | 0x8000) ||
            bits(from(middle)) != (i % 2 ? i + 1 : i) || bits(from(nextafterf(middle, 0))) != i ||
            bits(from(nextafterf(middle, INFINITY))) != i + 1)
            return false;
    }
    return bits(from(INFINITY)) == infinity && bits(from(-INFINITY)) == (infinity | 0x8000) &&
           bits(from(3e38f * 10)) == infinity && bits(from(NAN)) == 0x7fff &&
           bits(from(-NAN)) == 0x7fff && to(of_bits((unsigned short)infinity)) == INFINITY &&
           std::isnan(to(of_bits(0x7fff)));
}

bool bf16_rounds()
{
    return rounds<bf16>([](float f) { return __float2bfloat16(f); }, __bfloat162float,
                        __ushort_as_bfloat16, __bfloat16_as_ushort, 0x7f80);
}

bool f16_rounds()
{
    return rounds<f16>([](float f) { return __float2half(f); }, __half2float, __ushort_as_half,
                       __half_as_ushort, 0x7c00);
}

__global__ void indices(int *times)
{
    size_t block = blockIdx.x + gridDim.x * (blockIdx.y + (size_t)gridDim.y * blockIdx.z);
    size_t thread = threadIdx.x + blockDim.x * (threadIdx.y + (size_t)blockDim.y * threadIdx.z);

    times[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}

bool every_thread_runs_once()
{
    buffer<int> times(2 * 3 * 4 * 5 * 6 * 7);
    stream q;

    LAUNCH(indices, dim3(2, 3, 4), dim3(5, 6, 7), 0, q.s, times.device);
    for (int t : times.get())
        if (t != 1)
            return false;
    return true;
}

/* out[kind][width][lane], width = 1, 2, .. 32 */
__global__ void shuffles(int *out)
{
    int lane = (int)threadIdx.x;

    for (int w = 0; w < 6; w++) {
        int *to = out + w * 32 + lane;
        to[0 * 192] = __shfl_sync(ALL, lane, 13, 1 << w);
        to[1 * 192] = __shfl_up_sync(ALL, lane, 3, 1 << w);
        to[2 * 192] = __shfl_down_sync(ALL, lane, 5, 1 << w);
        to[3 * 192] = __shfl_xor_sync(ALL, lane, 6, 1 << w);
    }
}

bool shuffles_by_width()
{
    buffer<int> out(4 * 192);
    stream q;

    LAUNCH(shuffles, dim3(1), dim3(32), 0, q.s, out.device);
    const std::vector<int> &r = out.get();
    for (int w = 0; w < 6; w++)
        for (int lane = 0; lane < 32; lane++) {
            int width = 1 << w, first = lane / width * width, end = first + width;
            size_t at = (size_t)(w * 32 + lane);
            if (r[at] != first + 13 % width ||
                r[192 + at] != (lane - 3 < first ? lane : lane - 3) ||
                r[384 + at] != (lane + 5 >= end ? lane : lane + 5) ||
                r[576 + at] != ((lane ^ 6) >= end ? lane : lane ^ 6))
                return false;
        }
    return true;
}

__global__ void votes(unsigned *out)
{
    unsigned lane = threadIdx.x % 32, half = lane < 16 ? 0xffffu : 0xffff0000u;

    if (threadIdx.x == 40)
        return;
    unsigned v[4] = { __activemask(), 0, 0, 0 };
    if (threadIdx.x < 32) {
        v[1] = __ballot_sync(half, lane % 3 == 0);
        v[2] = (unsigned)__any_sync(half, lane == 3);
        v[3] = (unsigned)__all_sync(half, lane != 20);
    }
    for (int i = 0; i < 4; i++)
        out[threadIdx.x * 7 + (unsigned)i] = v[i];
    out[threadIdx.x * 7 + 4] = (unsigned)__syncthreads_count(threadIdx.x % 2);
    out[threadIdx.x * 7 + 5] = (unsigned)__syncthreads_or(threadIdx.x == 63);
    out[threadIdx.x * 7 + 6] = (unsigned)__syncthreads_and(threadIdx.x != 63);
}

bool votes_of_warps_and_blocks()
{
    buffer<unsigned> out(64 * 7);
    stream q;

    LAUNCH(votes, dim3(1), dim3(64), 0, q.s, out.device);
    const std::vector<unsigned> &r = out.get();
    const unsigned *low = r.data() + 2 * 7, *high = r.data() + 17 * 7;
    return low[0] == ALL && low[1] == 0x9249 && high[1] == 0x49240000 && low[2] && !high[2] &&
           low[3] && !high[3] && low[4] == 32 && high[4] == 32 && low[5] == 1 && low[6] == 0 &&
           r[63 * 7 + 4] == 32;
}

/* out[16][8] = a[16][16] b[16][8], all row-major; A by ldmatrix, B by its transposed form. */
template <class T> __global__ void product(float *out, const T *a, const T *b)
{
    SHARED_ARRAY(T, sa, 16 * 24);
    SHARED_ARRAY(T, sb, 16 * 24);
    int lane = (int)threadIdx.x;
    uint32_t fa[4], fb[4];
    float d[4] = { 1, 1, 1, 1 };

    for (int i = lane; i < 256; i += 32)
        sa[i / 16 * 24 + i % 16] = a[i];
    for (int i = lane; i < 256; i += 32)
        sb[i / 16 * 24 + i % 16] = i % 16 < 8 ? b[i / 16 * 8 + i % 16] : T(0.0f);
    __syncwarp();
    ldmatrix_x4(fa, sa + lane % 16 * 24 + lane / 16 * 8);
    ldmatrix_x4_trans(fb, sb + lane % 16 * 24 + lane / 16 * 8);
    uint32_t pair[2] = { fb[0], fb[1] };
    if constexpr (sizeof(T) == sizeof(bf16) && std::is_same<T, bf16>::value)
        mma_m16n8k16_bf16(d, fa, pair);
    else
        mma_m16n8k16_f16(d, fa, pair);
    for (int i = 0; i < 4; i++)
        out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

template <class T> bool product_right()
{
    buffer<T> a(256), b(128);
    buffer<float> out(128);
    stream q;

    for (size_t i = 0; i < 256; i++)
        a.host[i] = T((float)((int)(i * 37 % 61) - 30) / 8);
    for (size_t i = 0; i < 128; i++)
        b.host[i] = T((float)((int)(i * 53 % 67) - 33) / 4);
    a.put();
    b.put();
    LAUNCH(product<T>, dim3(1), dim3(32), 0, q.s, out.device, a.device, b.device);
    const std::vector<float> &r = out.get();
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 8; j++) {
            double sum = 1;
            for (size_t k = 0; k < 16; k++)
                sum += (double)(float)a.host[i * 16 + k] * (double)(float)b.host[k * 8 + j];
            if (r[i * 8 + j] != (float)sum)
                return false;
        }
    return true;
}

__global__ void atomics(int *n, unsigned *u, float *f)
{
    atomicAdd(&n[0], 2);
    atomicMax(&n[1], (int)threadIdx.x);
    atomicMin(&n[2], -(int)threadIdx.x);
    atomicCAS(&n[3], (int)threadIdx.x, (int)threadIdx.x + 1);
    atomicInc(&u[0], 9);
    atomicOr(&u[1], 1u << threadIdx.x % 32);
    atomicAdd(&f[0], 0.5f);
    if (atomicExch(&u[2], 1u) == 0)
        f[1] = 1;
}

bool atomics_count()
{
    buffer<int> n(4);
    buffer<unsigned> u(3);
    buffer<float> f(2);
    stream q;

    LAUNCH(atomics, dim3(3), dim3(64), 0, q.s, n.device, u.device, f.device);
    const std::vector<int> &r = n.get();
    return r[0] == 384 && r[1] == 63 && r[2] == -63 && r[3] >= 1 && u.get()[0] == 192 % 10 &&
           u.host[1] == ALL && f.get()[0] == 96 && f.host[1] == 1;
}

/* The order in which blocks came. */
__global__ void arrivals(unsigned *place, unsigned *next)
{
    if (threadIdx.x == 0)
        place[blockIdx.x] = atomicAdd(next, 1u);
}

bool blocks_in_order()
{
    const char *order = getenv("CUEMU_ORDER");
    buffer<unsigned> place(64), next(1);
    stream q;
    unsigned in_order = 0, reversed = 0;

    LAUNCH(arrivals, dim3(64), dim3(32), 0, q.s, place.device, next.device);
    place.get();
    for (unsigned i = 0; i < 64; i++) {
        in_order += place.host[i] == i;
        reversed += place.host[i] == 63 - i;
    }
    if (!order || !*order || !strcmp(order, "forward"))
        return in_order == 64;
    return !strcmp(order, "reverse") ? reversed == 64 : in_order < 16 && reversed < 16;
}

} // namespace

const std::vector<check> device_checks = {
    { "bf16 rounds to nearest even", bf16_rounds },
    { "f16 rounds to nearest even", f16_rounds },
    { "every thread of a grid runs once", every_thread_runs_once },
    { "blocks come in the order that was asked for", blocks_in_order },
    { "shuffles keep to their groups", shuffles_by_width },
    { "votes of warps and blocks", votes_of_warps_and_blocks },
    { "bf16 product of ldmatrix's fragments", product_right<bf16> },
    { "f16 product of ldmatrix's fragments", product_right<f16> },
    { "atomics", atomics_count },
};

int main()
{
    tap_plan((int)(device_checks.size() + host_checks.size()));
    for (const auto *group : { &device_checks, &host_checks })
        for (const check &c : *group)
            tap_ok(c.holds(), "%s", c.name);
    return tap_done();
}
