#include "cudnn.h"

#include "cudnn_run.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cudnnContext {
    cudaStream_t stream;
};

static char last_error[256];

static cudnnStatus_t refuse(cudnnStatus_t s, const char *why)
{
    snprintf(last_error, sizeof last_error, "emulated: %s", why);
    return s;
}

size_t cudnnGetVersion(void)
{
    return 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t s)
{
    switch (s) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    default:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    }
}

void cudnnGetLastErrorString(char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", last_error);
    last_error[0] = 0;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    int device;

    if (cudaGetDevice(&device) != cudaSuccess)
        return refuse(CUDNN_STATUS_NOT_INITIALIZED, "no device");
    *handle = calloc(1, sizeof **handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

const struct attribute *descriptor_find(const struct descriptor *d,
                                        cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < d->attributes; i++) {
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    }
    return NULL;
}

static const void *values_of(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    const struct attribute *a = descriptor_find(d, name);

    if (!a) {
        fprintf(stderr, "emulated cuDNN: attribute %d of a descriptor of type %d is not set\n",
                (int)name, (int)d->type);
        abort();
    }
    return a->values;
}

const struct descriptor *descriptor_get(const struct descriptor *d,
                                        cudnnBackendAttributeName_t name)
{
    return *(struct descriptor *const *)values_of(d, name);
}

const int64_t *descriptor_int64(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    return values_of(d, name);
}

int descriptor_enum(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    return *(const int *)values_of(d, name);
}

int descriptor_flag(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    const struct attribute *a = descriptor_find(d, name);

    return a && *(const bool *)a->values;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *d)
{
    struct descriptor *made = calloc(1, sizeof *made);

    made->type = type;
    *d = made;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = descriptor;

    for (int i = 0; i < d->attributes; i++)
        free(d->attribute[i].values);
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return sizeof(int);
    }
}

/* Descriptors may refer to finished ones only. */
static int all_finished(cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    struct descriptor *const *d = values;

    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++) {
        if (!d[i] || !d[i]->finished)
            return 0;
    }
    return 1;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n,
                                       const void *values)
{
    struct descriptor *d = descriptor;
    struct attribute *a;

    if (!d || d->finished || descriptor_find(d, name) || d->attributes == ATTRIBUTES)
        return refuse(CUDNN_STATUS_BAD_PARAM, "an attribute cannot be set");
    if (!all_finished(type, n, values))
        return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor is used before it is finalized");
    a = &d->attribute[d->attributes++];
    a->name = name;
    a->n = n;
    a->values = calloc((size_t)n + 1, size_of(type)); /* text gets its 0 */
    memcpy(a->values, values, (size_t)n * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = descriptor;

    if (!d || d->finished)
        return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor is finalized twice");
    d->finished = 1;
    return CUDNN_STATUS_SUCCESS;
}

/* The heuristics know one engine: it takes any graph. */
static cudnnStatus_t give_configuration(const struct descriptor *d, int64_t *n, void *values)
{
    struct descriptor *config = *(struct descriptor **)values;
    const struct descriptor *graph = descriptor_get(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);

    cudnnBackendSetAttribute(config, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    *n = 1;
    return cudnnBackendFinalize(config);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t *n,
                                       void *values)
{
    const struct descriptor *d = descriptor;
    const struct attribute *a = descriptor_find(d, name);

    if (!d->finished)
        return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor is asked before it is finalized");
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        return give_configuration(d, n, values);
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *n = 1;
        *(int64_t *)values = EMULATED_WORKSPACE;
        return CUDNN_STATUS_SUCCESS;
    }
    if (!a)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "an attribute is not known");
    *n = a->n < most ? a->n : most;
    memcpy(values, a->values, (size_t)*n * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

/* ---- execution ---- */

int run_binds(const struct cudnn_run *r, int64_t id)
{
    for (int i = 0; i < r->n; i++) {
        if (r->id[i] == id)
            return i;
    }
    return -1;
}

/* Whether x is by value: its number is read now, as cuDNN does. */
static void read_value(struct cudnn_run *r, const struct descriptor *tensor)
{
    int at = run_binds(r, descriptor_int64(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID)[0]);

    if (at >= 0 && descriptor_flag(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE))
        memcpy(&r->value[at], r->pointer[at], sizeof(float));
}

static void read_values(struct cudnn_run *r)
{
    const struct attribute *ops = descriptor_find(r->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

    for (int64_t i = 0; i < ops->n; i++) {
        const struct descriptor *o = ((struct descriptor *const *)ops->values)[i];

        if (o->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
            descriptor_find(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC))
            read_value(r, descriptor_get(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    const struct descriptor *p = pack, *config;
    const struct attribute *ids = descriptor_find(p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const struct attribute *pointers = descriptor_find(p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    struct cudnn_run *r = calloc(1, sizeof *r);

    config = descriptor_get(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!p->finished || !ids || !pointers || ids->n != pointers->n || ids->n > RUN_TENSORS) {
        free(r);
        return refuse(CUDNN_STATUS_BAD_PARAM, "the variant pack is not complete");
    }
    r->graph = descriptor_get(config, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    r->n = (int)ids->n;
    memcpy(r->id, ids->values, (size_t)r->n * sizeof *r->id);
    memcpy(r->pointer, pointers->values, (size_t)r->n * sizeof *r->pointer);
    r->workspace = *(void *const *)values_of(p, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    read_values(r);
    if (cudaLaunchHostFunc(handle->stream, cudnn_run, r) != cudaSuccess) {
        free(r);
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the stream does not take it");
    }
    return CUDNN_STATUS_SUCCESS;
}
