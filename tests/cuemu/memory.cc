/* memory.cc - device memory, pinned host memory, copies. */
#include "machine.h"
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

namespace cuemu
{
namespace
{

enum class owner { device, pinned };
struct block {
    size_t bytes;
    owner kind;
    int device;
};
std::map<uintptr_t, block> &blocks = *new std::map<uintptr_t, block>;
size_t taken[64]; /* bytes of each device */

/* CUEMU_MEMORY = MiB of each device */
size_t capacity()
{
    const char *s = getenv("CUEMU_MEMORY");
    char *end;

    if (!s || !*s)
        return (size_t)16 << 30;
    unsigned long long mib = strtoull(s, &end, 10);
    if (*end || mib < 1 || mib > 1 << 20)
        stop("CUEMU_MEMORY is not a number of MiB");
    return (size_t)mib << 20;
}

std::pair<const uintptr_t, block> *block_of(const void *p)
{
    auto after = blocks.upper_bound(reinterpret_cast<uintptr_t>(p));

    if (after == blocks.begin())
        return nullptr;
    auto &b = *--after;
    return reinterpret_cast<uintptr_t>(p) < b.first + b.second.bytes ? &b : nullptr;
}

bool is(owner kind, const void *p)
{
    const auto *b = block_of(p);

    return b && b->second.kind == kind;
}

/* Host memory, or inside of one device block, as the direction says. */
bool side_fits(const void *p, size_t bytes, bool device)
{
    const auto *b = block_of(p);

    if (!device)
        return !b || b->second.kind == owner::pinned;
    return b && b->second.kind == owner::device &&
           reinterpret_cast<uintptr_t>(p) + bytes <= b->first + b->second.bytes;
}

void *pinned_take(size_t bytes)
{
    void *p;

    if (posix_memalign(&p, 256, bytes) != 0)
        return nullptr;
    raw_fill(p, 0xff, bytes);
    return p;
}

void storage_free(void *p, owner kind)
{
    if (kind == owner::device)
        storage_give(p);
    else
        free(p);
}

cudaError_t take(void **p, size_t bytes, owner kind)
{
    int device = device_of_thread();

    *p = nullptr;
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (bytes == 0)
        return cudaSuccess;
    if (kind == owner::device && bytes > capacity() - taken[device])
        return failed(cudaErrorMemoryAllocation);
    *p = kind == owner::device ? storage_take(bytes) : pinned_take(bytes);
    if (!*p)
        return failed(cudaErrorMemoryAllocation);
    blocks[reinterpret_cast<uintptr_t>(*p)] = { bytes, kind, device };
    if (kind == owner::device)
        taken[device] += bytes;
    return cudaSuccess;
}

cudaError_t give(void *p, owner kind)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (!p)
        return cudaSuccess;
    auto at = blocks.find(reinterpret_cast<uintptr_t>(p));
    if (at == blocks.end() || at->second.kind != kind)
        return failed(cudaErrorInvalidValue);
    synchronize_all();
    if (kind == owner::device)
        taken[at->second.device] -= at->second.bytes;
    blocks.erase(at);
    storage_free(p, kind);
    return cudaSuccess;
}

/* The kind that cudaMemcpyDefault stands for, and whether the addresses fit the kind. */
bool direction(enum cudaMemcpyKind *kind, const void *to, const void *from, size_t bytes)
{
    if (*kind == cudaMemcpyDefault) {
        bool a = is(owner::device, to), b = is(owner::device, from);
        *kind = a ? (b ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                  : (b ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
    }
    bool to_device = *kind == cudaMemcpyHostToDevice || *kind == cudaMemcpyDeviceToDevice;
    bool from_device = *kind == cudaMemcpyDeviceToHost || *kind == cudaMemcpyDeviceToDevice;
    return bytes == 0 || (side_fits(to, bytes, to_device) && side_fits(from, bytes, from_device));
}

cudaError_t usable(cudaStream_t stream)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    return stream_usable(stream) ? cudaSuccess : failed(cudaErrorInvalidResourceHandle);
}

/* Explicit to the race detector, which is told to pass over what libraries do. */
void transfer(void *to, const void *from, size_t bytes)
{
#ifdef CUEMU_TSAN
    note_read(from, bytes);
    note_write(to, bytes);
    raw_copy(to, from, bytes);
#else
    memmove(to, from, bytes);
#endif
}

void set_bytes(void *to, int byte, size_t bytes)
{
#ifdef CUEMU_TSAN
    note_write(to, bytes);
    raw_fill(to, byte, bytes);
#else
    memset(to, byte, bytes);
#endif
}

} // namespace

void note_read(const void *p, size_t bytes)
{
    (void)p, (void)bytes;
    TSAN(__tsan_read_range(const_cast<void *>(p), bytes);)
}

void note_write(void *p, size_t bytes)
{
    (void)p, (void)bytes;
    TSAN(__tsan_write_range(p, bytes);)
}

} // namespace cuemu

using namespace cuemu;

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    return take(p, bytes, owner::device);
}

cudaError_t cudaFree(void *p)
{
    return give(p, owner::device);
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    return take(p, bytes, owner::pinned);
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
    if (flags > cudaHostAllocPortable)
        return failed(cudaErrorInvalidValue);
    return take(p, bytes, owner::pinned);
}

cudaError_t cudaFreeHost(void *p)
{
    return give(p, owner::pinned);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    if (left)
        *left = capacity() - taken[device_of_thread()];
    if (total)
        *total = capacity();
    return failed(device_error());
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
    const auto *b = block_of(p);
    void *q = const_cast<void *>(p);

    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (!b)
        *a = { cudaMemoryTypeUnregistered, -1, nullptr, q };
    else if (b->second.kind == owner::pinned)
        *a = { cudaMemoryTypeHost, b->second.device, q, q };
    else
        *a = { cudaMemoryTypeDevice, b->second.device, q, nullptr };
    return cudaSuccess;
}

/* Pageable memory is read at the call, pinned memory when the stream gets there; host memory is
 * written when the stream gets there. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    if (usable(stream) != cudaSuccess)
        return cudaPeekAtLastError();
    if (!direction(&kind, to, from, bytes))
        return failed(cudaErrorInvalidValue);
    if (bytes == 0)
        return cudaSuccess;
    if (kind == cudaMemcpyHostToDevice && !is(owner::pinned, from)) {
        char *kept = static_cast<char *>(malloc(bytes));
        memcpy(kept, from, bytes);
        enqueue(stream, [=] {
            transfer(to, kept, bytes);
            free(kept);
        });
    } else {
        enqueue(stream, [=] { transfer(to, from, bytes); });
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    if (width > to_pitch || width > from_pitch)
        return failed(cudaErrorInvalidValue);
    for (size_t i = 0; i < height; i++) {
        cudaError_t e =
            cudaMemcpyAsync(static_cast<char *>(to) + i * to_pitch,
                            static_cast<const char *>(from) + i * from_pitch, width, kind, stream);
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, nullptr);

    return e == cudaSuccess ? cudaStreamSynchronize(nullptr) : e;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    if (usable(stream) != cudaSuccess)
        return cudaPeekAtLastError();
    if (bytes && !side_fits(to, bytes, true))
        return failed(cudaErrorInvalidValue);
    if (bytes)
        enqueue(stream, [=] { set_bytes(to, byte, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes)
{
    return cudaMemsetAsync(to, byte, bytes, nullptr);
}

/* Everything that the device holds goes. */
cudaError_t cudaDeviceReset(void)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    synchronize_all();
    for (auto at = blocks.begin(); at != blocks.end();) {
        if (at->second.device != device_of_thread()) {
            ++at;
            continue;
        }
        if (at->second.kind == owner::device)
            taken[at->second.device] -= at->second.bytes;
        storage_free(reinterpret_cast<void *>(at->first), at->second.kind);
        at = blocks.erase(at);
    }
    return cudaSuccess;
}
