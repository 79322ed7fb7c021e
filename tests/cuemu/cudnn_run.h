/* Inside of the emulated cuDNN: descriptors and the execution of their graphs. */
#ifndef CUEMU_CUDNN_RUN_H
#define CUEMU_CUDNN_RUN_H
#include "cudnn.h"

enum { ATTRIBUTES = 16, EMULATED_WORKSPACE = 1000 };

struct attribute {
    cudnnBackendAttributeName_t name;
    int64_t n;
    void *values;
};

struct descriptor {
    cudnnBackendDescriptorType_t type;
    int finished, attributes;
    struct attribute attribute[ATTRIBUTES];
};

/* NULL: not set */
const struct attribute *descriptor_find(const struct descriptor *d,
                                        cudnnBackendAttributeName_t name);
/* The value must be there: a descriptor; one or more int64. */
const struct descriptor *descriptor_get(const struct descriptor *d,
                                        cudnnBackendAttributeName_t name);
const int64_t *descriptor_int64(const struct descriptor *d, cudnnBackendAttributeName_t name);
int descriptor_enum(const struct descriptor *d, cudnnBackendAttributeName_t name);
/* 0 if not set */
int descriptor_flag(const struct descriptor *d, cudnnBackendAttributeName_t name);

/* A queued execution. By-value tensors were read when it was queued. */
enum { RUN_TENSORS = 32 };
struct cudnn_run {
    const struct descriptor *graph;
    int n;
    int64_t id[RUN_TENSORS];
    void *pointer[RUN_TENSORS];
    float value[RUN_TENSORS];
    void *workspace;
};
int run_binds(const struct cudnn_run *r, int64_t id); /* its place, -1: not given */
void cudnn_run(void *run);                            /* a cudaHostFn_t; frees the run */
#endif
