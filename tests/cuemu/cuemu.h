/* The language of kernels on the host: a CUDA thread is a fiber. See README.md. */
#ifndef CUEMU_H
#define CUEMU_H
#include "cuda_runtime_api.h"
#include <cstdint>
#include <functional>

#define CUEMU 1
#define __global__
#define __device__
#define __host__
#define __shared__      use_SHARED_ARRAY_or_DYN_SHARED_of_dialect_h
#define __constant__    constant_memory_is_not_in_the_dialect
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __grid_constant__

namespace cuemu
{

struct place {
    const char *file;
    int line;
};
#define CUEMU_HERE (cuemu::place{ __FILE__, __LINE__ })

struct context {
    uint3 thread, block;
    dim3 block_size, grid_size;
    int lane, warp;
    void *dynamic_shared;
};
extern context *current; /* of the CUDA thread that runs; NULL in host code */

/* ---- launches and other work in stream order: for the dialect and for library shims ---- */
struct launch_shape {
    const char *name;
    const void *kernel;
    dim3 grid, block;
    size_t shared;
};
void launch(const launch_shape &shape, cudaStream_t stream, std::function<void()> thread);
/* A library call's work: runs when the stream gets there; device memory is accessible only then. */
void enqueue(cudaStream_t stream, std::function<void()> work);
/* The same for work that meets other processes: false if it cannot finish yet; it is asked again
 * whenever the host waits, even for something else. It never blocks. */
void enqueue_shared(cudaStream_t stream, std::function<bool()> work);
/* Run what other processes may wait for, as far as it goes; true if anything was done. */
bool progress();
/* What such work reads and writes, for the race detector; no effect otherwise. */
void note_read(const void *p, size_t bytes);
void note_write(void *p, size_t bytes);

/* ---- shared memory ---- */
void *shared_array(const void *site, size_t bytes);

/* ---- barriers and warp operations ---- */
void block_barrier(place where);
int block_count(place where, bool predicate);
void warp_barrier(place where, unsigned mask);
struct warp_place {
    place where;
    void meet(unsigned mask = 0xffffffffu) const
    {
        warp_barrier(where, mask);
    }
};
unsigned ballot(place where, unsigned mask, bool predicate);
unsigned active_mask();
enum class shuffle { from, up, down, across };
void exchange(place where, unsigned mask, void *value, size_t bytes, shuffle kind, int n,
              int width);

template <class T>
static inline T shuffled(place where, unsigned mask, T value, shuffle kind, int n, int width = 32)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 2, "no shuffle of this type");
    exchange(where, mask, &value, sizeof value, kind, n, width);
    return value;
}

/* ---- tensor cores and asynchronous copies ---- */
enum class number { bf16, f16 };
void mma(place where, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], number type);
void load_matrices(place where, bool transposed, uint32_t (&r)[4], const void *row);
void copy_async(place where, void *to, const void *from, bool ok);
void commit_copies(place where);
void wait_for_copies(int pending);

} // namespace cuemu

#define threadIdx (cuemu::current->thread)
#define blockIdx  (cuemu::current->block)
#define blockDim  (cuemu::current->block_size)
#define gridDim   (cuemu::current->grid_size)

#define __syncthreads()        cuemu::block_barrier(CUEMU_HERE)
#define __syncthreads_count(p) cuemu::block_count(CUEMU_HERE, p)
#define __syncthreads_or(p)    (cuemu::block_count(CUEMU_HERE, p) != 0)
#define __syncthreads_and(p)   (cuemu::block_count(CUEMU_HERE, !(p)) == 0)
#define __syncwarp(...)        cuemu::warp_place{ CUEMU_HERE }.meet(__VA_ARGS__)
#define __ballot_sync(mask, p) cuemu::ballot(CUEMU_HERE, mask, p)
#define __any_sync(mask, p)    (cuemu::ballot(CUEMU_HERE, mask, p) != 0)
#define __all_sync(mask, p)    (cuemu::ballot(CUEMU_HERE, mask, !(p)) == 0)
#define __activemask()         cuemu::active_mask()
#define CUEMU_SHUFFLE(kind, mask, v, ...) \
    cuemu::shuffled(CUEMU_HERE, mask, v, cuemu::shuffle::kind, __VA_ARGS__)
#define __shfl_sync(mask, v, ...)      CUEMU_SHUFFLE(from, mask, v, __VA_ARGS__)
#define __shfl_up_sync(mask, v, ...)   CUEMU_SHUFFLE(up, mask, v, __VA_ARGS__)
#define __shfl_down_sync(mask, v, ...) CUEMU_SHUFFLE(down, mask, v, __VA_ARGS__)
#define __shfl_xor_sync(mask, v, ...)  CUEMU_SHUFFLE(across, mask, v, __VA_ARGS__)
/* The atomics acquire and release; a missing fence is not seen. */
#define __threadfence()        ((void)0)
#define __threadfence_block()  ((void)0)
#define __threadfence_system() ((void)0)
#endif
