/* The CUDA that our kernels speak beyond the plain language: launch, shared memory, tensor cores
 * and asynchronous copies. All inline PTX is here. The host side (CUEMU) is the tests' emulation.
 */
#ifndef CUDA_DIALECT_H
#define CUDA_DIALECT_H
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

typedef __nv_bfloat16 bf16;
typedef __half f16;

/* LAUNCH(kernel, grid, block, dynamic shared bytes, stream, arguments...); arguments are converted
 * to the kernel's parameters. Template arguments with commas: LAUNCH((kernel<A, B>), ...).
 * Afterwards: cuda_check(cudaGetLastError(), ...). */
#define LAUNCH(kernel, ...) dialect_launch(#kernel, kernel, __VA_ARGS__)

/* SHARED_ARRAY(T, name, n): T name[n], one per block, 16-byte aligned; one array per buffer.
 * DYN_SHARED(T, name): T *const name, the launch's dynamic shared memory, 128-byte aligned.
 *
 * Whole warps only, every lane with the same N:
 * mma_m16n8k16_bf16, _f16(d, a, b): d[4] += A B in fp32; fragments as in the PTX manual's m16n8k16.
 * ldmatrix_x4(r, row): four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8
 * of matrix i / 8, 16-byte aligned in shared memory. _trans: each matrix transposed. cp_async16(to,
 * from, ok): 16 bytes from global to shared memory, zeros if !ok (from is aligned and points into
 * the source all the same). cp_async_commit() closes a group; cp_async_wait<N>() waits until at
 * most N groups of this thread are pending; others' copies need a barrier after it. */
#ifdef CUEMU

#define SHARED_ARRAY(T, name, n) \
    static char name##_site;     \
    T(&name)[n] = *static_cast<T(*)[n]>(cuemu::shared_array(&name##_site, sizeof(T) * (n)))
#define DYN_SHARED(T, name) T *const name = static_cast<T *>(cuemu::current->dynamic_shared)

template <class... P, class... A>
static inline void dialect_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                  size_t shared, cudaStream_t stream, A... a)
{
    cuemu::launch({ name, reinterpret_cast<const void *>(kernel), grid, block, shared }, stream,
                  [=] { kernel(static_cast<P>(a)...); });
}

#define CUEMU_MMA(type, d, a, b) cuemu::mma(CUEMU_HERE, d, a, b, cuemu::number::type)
#define mma_m16n8k16_bf16(...)   CUEMU_MMA(bf16, __VA_ARGS__)
#define mma_m16n8k16_f16(...)    CUEMU_MMA(f16, __VA_ARGS__)
#define ldmatrix_x4(...)         cuemu::load_matrices(CUEMU_HERE, false, __VA_ARGS__)
#define ldmatrix_x4_trans(...)   cuemu::load_matrices(CUEMU_HERE, true, __VA_ARGS__)
#define cp_async16(...)          cuemu::copy_async(CUEMU_HERE, __VA_ARGS__)
#define cp_async_commit()        cuemu::commit_copies(CUEMU_HERE)
template <int N> static inline void cp_async_wait()
{
    cuemu::wait_for_copies(N);
}

#else

#define SHARED_ARRAY(T, name, n) __shared__ __align__(16) T name[n]
#define DYN_SHARED(T, name)                                                  \
    extern __shared__ __align__(128) unsigned char dialect_dynamic_shared[]; \
    T *const name = reinterpret_cast<T *>(dialect_dynamic_shared)

template <class... P, class... A>
static inline void dialect_launch(const char *, void (*kernel)(P...), dim3 grid, dim3 block,
                                  size_t shared, cudaStream_t stream, A... a)
{
    kernel<<<grid, block, shared, stream>>>(static_cast<P>(a)...);
}

#define DIALECT_MMA(name, type)                                                                    \
    __device__ static inline void name(float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) \
    {                                                                                              \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                       \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));          \
    }
DIALECT_MMA(mma_m16n8k16_bf16, "bf16")
DIALECT_MMA(mma_m16n8k16_f16, "f16")
#undef DIALECT_MMA

#define DIALECT_LDMATRIX(name, trans)                                                         \
    __device__ static inline void name(uint32_t(&r)[4], const void *row)                      \
    {                                                                                         \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0,%1,%2,%3}, [%4];" \
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                         \
                     : "r"((unsigned)__cvta_generic_to_shared(row))                           \
                     : "memory");                                                             \
    }
DIALECT_LDMATRIX(ldmatrix_x4, "")
DIALECT_LDMATRIX(ldmatrix_x4_trans, ".trans")
#undef DIALECT_LDMATRIX

__device__ static inline void cp_async16(void *to, const void *from, bool ok)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(ok ? 16 : 0)
                 : "memory");
}

__device__ static inline void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> __device__ static inline void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#endif
#endif
