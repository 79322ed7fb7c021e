/* Kernels and host code with a planted bug each, and the same without it. */
#ifndef TESTS_CUEMU_PLANTED_H
#define TESTS_CUEMU_PLANTED_H
#include "cuda/dialect.h"
#include <vector>

/* Runs with or without its bug; whether the result is right. */
struct planted {
    const char *name;
    bool (*run)(bool bug);
};
extern const std::vector<planted> planted_barriers, planted_copies, planted_bounds, planted_warps,
    planted_launches, planted_streams;

/* Device memory of n elements with a host copy; starts as zeros. */
template <class T> struct buffer {
    T *device;
    std::vector<T> host;

    explicit buffer(size_t n) : device(nullptr), host(n)
    {
        cudaMalloc(&device, n * sizeof(T));
        put();
    }
    ~buffer()
    {
        cudaFree(device);
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    void put()
    {
        cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
    }
    /* After everything that was queued. */
    const std::vector<T> &get()
    {
        cudaDeviceSynchronize();
        cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost);
        return host;
    }
};

/* A stream of one case. */
struct stream {
    cudaStream_t s;

    stream() : s(nullptr)
    {
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    }
    ~stream()
    {
        cudaStreamDestroy(s);
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;
};
#endif
