/* device.cc - the devices that the machine pretends to have, errors, attributes of kernels. */
#include "machine.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace cuemu
{
namespace
{

cudaError_t last_error = cudaSuccess;
int chosen_device;
std::map<const void *, size_t> opted_in; /* kernels' dynamic shared memory */

enum { RUNTIME_VERSION = CUDART_VERSION, OLD_DRIVER = 12020, DEVICES_MAX = 64 };

/* CUEMU_DRIVER = none | old | nodevice: machines without a usable device */
const char *driver()
{
    const char *s = getenv("CUEMU_DRIVER");

    if (!s || !*s)
        return "";
    if (strcmp(s, "none") && strcmp(s, "old") && strcmp(s, "nodevice"))
        stop("CUEMU_DRIVER is neither none, old nor nodevice");
    return s;
}

int number(const char *name, int otherwise, int least, int most)
{
    const char *s = getenv(name);
    char *end;

    if (!s || !*s)
        return otherwise;
    long v = strtol(s, &end, 10);
    if (*end || v < least || v > most) {
        fprintf(stderr, "cuemu: %s=%s is not an integer from %d to %d\n", name, s, least, most);
        abort();
    }
    return (int)v;
}

int devices()
{
    return number("CUEMU_DEVICES", 1, 1, DEVICES_MAX);
}

/* CUEMU_CAPABILITY = 80, 90, ...: major * 10 + minor */
int capability()
{
    return number("CUEMU_CAPABILITY", 90, 10, 129);
}

enum { PROCESSORS = 8 };

const struct {
    cudaError_t e;
    const char *name, *text;
} errors[] = {
    { cudaSuccess, "cudaSuccess", "no error" },
    { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
    { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
    { cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
      "invalid configuration argument" },
    { cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
      "invalid copy direction for memcpy" },
    { cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
      "CUDA driver version is insufficient for CUDA runtime version" },
    { cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
    { cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
    { cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
    { cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
    { cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported" },
};

} // namespace

cudaError_t failed(cudaError_t e)
{
    if (e != cudaSuccess)
        last_error = e;
    return e;
}

cudaError_t device_error()
{
    const char *s = driver();

    return !*s                     ? cudaSuccess
           : strcmp(s, "nodevice") ? cudaErrorInsufficientDriver
                                   : cudaErrorNoDevice;
}

int device_of_thread()
{
    return chosen_device;
}

size_t dynamic_shared_limit(const void *kernel)
{
    auto at = opted_in.find(kernel);

    return at == opted_in.end() ? (size_t)SHARED_DEFAULT : at->second;
}

} // namespace cuemu

using namespace cuemu;

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;

    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorName(cudaError_t e)
{
    for (const auto &known : errors)
        if (known.e == e)
            return known.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t e)
{
    for (const auto &known : errors)
        if (known.e == e)
            return known.text;
    return "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int *version)
{
    const char *s = driver();

    *version = !strcmp(s, "none") ? 0 : !strcmp(s, "old") ? OLD_DRIVER : RUNTIME_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = device_error() == cudaSuccess ? devices() : 0;
    return failed(device_error());
}

cudaError_t cudaGetDevice(int *device)
{
    *device = chosen_device;
    return failed(device_error());
}

cudaError_t cudaSetDevice(int device)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (device < 0 || device >= devices())
        return failed(cudaErrorInvalidDevice);
    chosen_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (device < 0 || device >= devices())
        return failed(cudaErrorInvalidDevice);
    *prop = {};
    snprintf(prop->name, sizeof prop->name, "Emulated device %d", device);
    memcpy(prop->uuid.bytes, "cuemu", 5);
    prop->uuid.bytes[15] = (char)device;
    cudaMemGetInfo(nullptr, &prop->totalGlobalMem);
    prop->sharedMemPerBlock = SHARED_DEFAULT;
    prop->sharedMemPerBlockOptin = SHARED_MAX;
    prop->regsPerBlock = 65536;
    prop->warpSize = WARP;
    prop->maxThreadsPerBlock = THREADS_MAX;
    prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = THREADS_MAX;
    prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = 0x7fffffff;
    prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    prop->major = capability() / 10;
    prop->minor = capability() % 10;
    prop->multiProcessorCount = PROCESSORS;
    prop->maxThreadsPerMultiProcessor = 2048;
    prop->pciBusID = device + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    struct cudaDeviceProp prop;
    cudaError_t e = cudaGetDeviceProperties(&prop, device);

    if (e != cudaSuccess)
        return e;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = prop.maxThreadsPerBlock;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = (int)prop.sharedMemPerBlock;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = (int)prop.sharedMemPerBlockOptin;
        return cudaSuccess;
    case cudaDevAttrClockRate: /* kHz */
        *value = 1000000;
        return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        *value = prop.multiProcessorCount;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = prop.major;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = prop.minor;
        return cudaSuccess;
    }
    return failed(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (device < 0 || device >= devices())
        return failed(cudaErrorInvalidDevice);
    if (snprintf(id, (size_t)bytes, "0000:%02x:00.0", device + 1) >= bytes)
        return failed(cudaErrorInvalidValue);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return failed(device_error());
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    if (device_error() != cudaSuccess)
        return failed(device_error());
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return value < -1 || value > 100 ? failed(cudaErrorInvalidValue) : cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > SHARED_MAX)
        return failed(cudaErrorInvalidValue);
    opted_in[kernel] = (size_t)value;
    return cudaSuccess;
}
