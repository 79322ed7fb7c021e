#include "cuda/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPABILITY_MIN = 80 };

/* Why there is no device: asked before any other call of CUDA's libraries. */
static enum status explain(cudaError_t code, struct err *e)
{
    int driver = 0, runtime = 0;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) {
        return err_set(e, E_RESOURCE,
                       "no NVIDIA driver on this machine: run where there is one, or with device = "
                       "'cpu'");
    }
    if (code == cudaErrorInsufficientDriver) {
        return err_set(e, E_RESOURCE,
                       "the NVIDIA driver is for CUDA %d.%d, too old for this program's CUDA "
                       "%d.%d: install a newer driver, or build with an older toolkit",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    }
    if (code == cudaErrorNoDevice || code == cudaSuccess) {
        return err_set(e, E_RESOURCE,
                       "an NVIDIA driver is present, but no CUDA device is visible "
                       "(CUDA_VISIBLE_DEVICES is %s%s%s)",
                       visible ? "'" : "", visible ? visible : "not set", visible ? "'" : "");
    }
    return err_set(e, E_RESOURCE, "the CUDA devices of this machine cannot be used: %s (%s)",
                   cudaGetErrorString(code), cudaGetErrorName(code));
}

enum status cuda_device_of(int local_rank, int *device, struct err *e)
{
    int count = 0, major = 0, minor = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (code != cudaSuccess || count == 0) {
        return explain(code, e);
    }
    *device = local_rank % count;
    code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, *device);
    if (code == cudaSuccess) {
        code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, *device);
    }
    if (code != cudaSuccess) {
        cudaGetLastError();
        return explain(code, e);
    }
    if (10 * major + minor < CAPABILITY_MIN) {
        return err_set(e, E_RESOURCE,
                       "CUDA device %d is of compute capability %d.%d, at least %d.%d is needed: "
                       "take a newer one (CUDA_VISIBLE_DEVICES), or device = 'cpu'",
                       *device, major, minor, CAPABILITY_MIN / 10, CAPABILITY_MIN % 10);
    }
    return OK;
}

enum status cuda_probe(int local_rank, struct err *e)
{
    int device;
    return cuda_device_of(local_rank, &device, e);
}

void cuda_device(struct queue *q, struct ops_device *d)
{
    struct cudaDeviceProp prop;
    size_t left = 0, total = 0;
    int runtime = 0;
    cuda_check(cudaGetDeviceProperties(&prop, q->device), "device properties");
    cuda_check(cudaMemGetInfo(&left, &total), "free memory");
    cuda_check(cudaRuntimeGetVersion(&runtime), "version");
    *d = (struct ops_device){ .memory_free = (int64_t)left, .memory = (int64_t)total };
    snprintf(d->text, sizeof d->text, "%.100s, sm_%d, CUDA %d.%d", prop.name, q->capability,
             runtime / 1000, runtime % 1000 / 10);
    _Static_assert(sizeof d->id == sizeof prop.uuid, "a UUID of 16 bytes");
    memcpy(d->id, &prop.uuid, sizeof d->id);
}

/* NVIDIA's data sheets, dense, at boost clocks; the first name that the device's contains. */
static const struct {
    const char *name;
    double bf16, fp32; /* TFLOP/s; fp32 without tensor cores */
} sheets[] = {
    { "GB200", 2500, 80 },     { "B200", 2250, 75 },     { "GH200", 989.4, 66.9 },
    { "H200 NVL", 835.5, 60 }, { "H200", 989.4, 66.9 },  { "H100 PCIe", 756, 51.2 },
    { "H100 NVL", 835.5, 60 }, { "H100", 989.4, 66.9 },  { "H800 PCIe", 756, 51.2 },
    { "H800", 989.4, 66.9 },   { "H20", 148, 44 },       { "A100", 312, 19.5 },
    { "A800", 312, 19.5 },     { "A30", 165, 10.3 },     { "A40", 149.7, 37.4 },
    { "A10", 125, 31.2 },      { "L40S", 362.05, 91.6 }, { "L40", 181.05, 90.5 },
    { "L4", 121, 30.3 },
};

/* FLOP of one multiprocessor in a cycle, by capability: bf16 with fp32 sums on tensor cores, fp32
 * without. */
static const struct {
    int capability;
    double bf16, fp32;
} cycles[] = {
    { 120, 1024, 256 }, { 100, 8192, 256 }, { 90, 4096, 256 }, { 86, 1024, 256 }, { 80, 2048, 128 }
};

double cuda_measure_peak(struct queue *q, enum dtype t, double seconds)
{
    struct cudaDeviceProp prop;
    int kilohertz = 0;
    (void)seconds;
    cuda_check(cudaGetDeviceProperties(&prop, q->device), "device properties");
    for (int i = 0; i < COUNT_OF(sheets); i++) {
        if (strstr(prop.name, sheets[i].name)) {
            return 1e12 * (t == F32 ? sheets[i].fp32 : sheets[i].bf16);
        }
    }
    cuda_check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, q->device), "clock");
    for (int i = 0; i < COUNT_OF(cycles); i++) {
        if (q->capability >= cycles[i].capability) {
            return 1e3 * kilohertz * q->sm_count * (t == F32 ? cycles[i].fp32 : cycles[i].bf16);
        }
    }
    die(E_BUG, "a device of capability %d", q->capability);
}
