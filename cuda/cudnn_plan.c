#include "cuda/cudnn_plan.h"

#include "base/arena.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the graph under construction ---- */

static void last_words(cudnnStatus_t s, char *why, size_t bytes)
{
    char text[512] = "";

    cudnnGetLastErrorString(text, sizeof text);
    snprintf(why, bytes, "%s%s%s", cudnnGetErrorString(s), text[0] ? ": " : "", text);
}

static void check(struct cudnn_graph *g, cudnnStatus_t s)
{
    if (s == CUDNN_STATUS_SUCCESS || g->status != CUDNN_STATUS_SUCCESS)
        return;
    g->status = s;
    last_words(s, g->why, sizeof g->why);
}

/* NULL after a failure; every setter below then does nothing. */
static cudnnBackendDescriptor_t make(struct cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;

    BUG_IF(g->descriptors == GRAPH_DESCRIPTORS);
    if (g->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    check(g, cudnnBackendCreateDescriptor(type, &d));
    if (g->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    return g->owned[g->descriptors++] = d;
}

static void set(struct cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        check(g, cudnnBackendSetAttribute(d, name, type, n, value));
}

static void set_descriptor(struct cudnn_graph *g, cudnnBackendDescriptor_t d,
                           cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finish(struct cudnn_graph *g, cudnnBackendDescriptor_t d)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        check(g, cudnnBackendFinalize(d));
}

static void finish_operation(struct cudnn_graph *g, cudnnBackendDescriptor_t d)
{
    BUG_IF(g->operations == GRAPH_OPERATIONS);
    finish(g, d);
    g->operation[g->operations++] = d;
}

static int64_t alignment(enum tensor_kind kind, cudnnDataType_t type)
{
    int half = type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF;

    return half || kind == TENSOR_VIRTUAL ? 16 : 4;
}

struct cudnn_tensor graph_tensor(struct cudnn_graph *g, int64_t id, enum tensor_kind kind,
                                 cudnnDataType_t type, const int64_t dim[4],
                                 const int64_t stride[4])
{
    struct cudnn_tensor t = { .d = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR) };
    int64_t align = alignment(kind, type);
    bool is_virtual = kind == TENSOR_VIRTUAL, by_value = kind == TENSOR_BY_VALUE;

    BUG_IF(kind != TENSOR_VIRTUAL && id >= GRAPH_VIRTUAL);
    if (kind == TENSOR_VIRTUAL)
        id = GRAPH_VIRTUAL + g->virtuals++;
    memcpy(t.dim, dim, sizeof t.dim);
    memcpy(t.stride, stride, sizeof t.stride);
    set(g, t.d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(g, t.d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t.dim);
    set(g, t.d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t.stride);
    set(g, t.d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(g, t.d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    set(g, t.d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    set(g, t.d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finish(g, t.d);
    return t;
}

void graph_pointwise(struct cudnn_graph *g, const struct cudnn_pointwise *p,
                     const struct cudnn_tensor *y)
{
    cudnnBackendDescriptor_t how = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    int64_t axis = p->axis;

    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p->mode);
    set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p->compute);
    if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
        set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finish(g, how);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x->d);
    if (p->b)
        set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b->d);
    if (p->t)
        set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->t->d);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y->d);
    finish_operation(g, o);
}

void graph_reduce(struct cudnn_graph *g, cudnnReduceTensorOp_t how, const struct cudnn_tensor *x,
                  const struct cudnn_tensor *y)
{
    cudnnBackendDescriptor_t r = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    cudnnDataType_t f32 = CUDNN_DATA_FLOAT;

    set(g, r, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    set(g, r, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f32);
    finish(g, r);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_REDUCTION_DESC, r);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x->d);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y->d);
    finish_operation(g, o);
}

void graph_matmul(struct cudnn_graph *g, const struct cudnn_tensor *a, const struct cudnn_tensor *b,
                  const struct cudnn_tensor *c)
{
    cudnnBackendDescriptor_t m = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    cudnnDataType_t f32 = CUDNN_DATA_FLOAT;

    set(g, m, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f32);
    finish(g, m);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_DESC, m);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a->d);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b->d);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c->d);
    finish_operation(g, o);
}

void graph_reshape(struct cudnn_graph *g, const struct cudnn_tensor *x,
                   const struct cudnn_tensor *y)
{
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

    set_descriptor(g, o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x->d);
    set_descriptor(g, o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y->d);
    finish_operation(g, o);
}

void graph_free(struct cudnn_graph *g)
{
    while (g->descriptors > 0)
        cudnnBackendDestroyDescriptor(g->owned[--g->descriptors]);
    memset(g, 0, sizeof *g);
}

/* ---- plans ---- */

enum { CONFIGURATIONS = 16 };

static cudnnBackendDescriptor_t operation_graph(struct cudnn_graph *g, const struct cudnn_device *d)
{
    cudnnBackendDescriptor_t o = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

    set(g, o, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operations,
        g->operation);
    if (d->handle)
        set(g, o, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &d->handle);
    finish(g, o);
    return o;
}

/* Fills config, best first; returns how many. */
static int64_t ask_heuristics(struct cudnn_graph *g, const struct cudnn_device *d,
                              cudnnBackendDescriptor_t config[CONFIGURATIONS])
{
    cudnnBackendDescriptor_t o = operation_graph(g, d);
    cudnnBackendDescriptor_t h = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t n = 0;

    set_descriptor(g, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, o);
    set(g, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!d->handle)
        set_descriptor(g, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, d->properties);
    finish(g, h);
    for (int i = 0; i < CONFIGURATIONS; i++)
        config[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->status != CUDNN_STATUS_SUCCESS)
        return 0;
    check(g, cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGURATIONS, &n, config));
    return g->status == CUDNN_STATUS_SUCCESS ? n : 0;
}

/* An engine may refuse its configuration only here. */
static cudnnStatus_t finalize_plan(cudnnBackendDescriptor_t p, cudnnBackendDescriptor_t config,
                                   const struct cudnn_device *d, int64_t *workspace)
{
    cudnnStatus_t s = cudnnBackendSetAttribute(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    int64_t n = 0;

    if (s == CUDNN_STATUS_SUCCESS && d->handle)
        s = cudnnBackendSetAttribute(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                     &d->handle);
    else if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendSetAttribute(p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d->properties);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendFinalize(p);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendGetAttribute(p, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                     1, &n, workspace);
    return s;
}

enum status plan_build(struct cudnn_plan *p, struct cudnn_graph *g, const struct cudnn_device *d,
                       struct err *e)
{
    cudnnBackendDescriptor_t config[CONFIGURATIONS];
    int64_t n = ask_heuristics(g, d, config), bytes = 0;
    char why[1024] = "no engine knows this graph";

    memset(p, 0, sizeof *p);
    if (g->status != CUDNN_STATUS_SUCCESS)
        return err_set(e, E_RESOURCE, "%s", g->why);
    for (int64_t i = 0; i < n; i++) {
        cudnnStatus_t s =
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &p->d);
        if (s == CUDNN_STATUS_SUCCESS)
            s = finalize_plan(p->d, config[i], d, &bytes);
        if (s == CUDNN_STATUS_SUCCESS) {
            p->workspace = (size_t)bytes;
            return OK;
        }
        last_words(s, why, sizeof why);
        plan_free(p);
    }
    return err_set(e, E_RESOURCE, "%s", why);
}

void plan_free(struct cudnn_plan *p)
{
    if (p->d)
        cudnnBackendDestroyDescriptor(p->d);
    memset(p, 0, sizeof *p);
}

static cudnnStatus_t fill_pack(cudnnBackendDescriptor_t pack, const int64_t *id,
                               void *const *pointer, int n, void *workspace)
{
    cudnnStatus_t s =
        cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, id);

    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                     CUDNN_TYPE_VOID_PTR, n, pointer);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                                     1, &workspace);
    return s == CUDNN_STATUS_SUCCESS ? cudnnBackendFinalize(pack) : s;
}

void plan_run(const struct cudnn_plan *p, const struct cudnn_device *d, const int64_t *id,
              void *const *pointer, int n, void *workspace, const char *what)
{
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t s = cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    char why[1024];

    if (s == CUDNN_STATUS_SUCCESS)
        s = fill_pack(pack, id, pointer, n, workspace);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendExecute(d->handle, p->d, pack);
    if (s != CUDNN_STATUS_SUCCESS) {
        last_words(s, why, sizeof why);
        die(E_PEER, "cuDNN, %s: %s", what, why);
    }
    cudnnBackendDestroyDescriptor(pack);
}

/* ---- devices ---- */

void cudnn_device_describe(const struct cudnn_device *d, char *json, size_t bytes)
{
    int64_t n = 0;

    memset(json, 0, bytes);
    cudnnBackendGetAttribute(d->properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                             CUDNN_TYPE_CHAR, (int64_t)bytes - 1, &n, json);
}

/* 90 = sm_90; 0: unknown */
static int capability_of(const struct cudnn_device *d)
{
    static const char key[] = "\"deviceVer\":";
    int device = 0, major = 0, minor = 0;
    char json[4096];
    const char *at;

    if (d->handle) {
        if (cudaGetDevice(&device) == cudaSuccess &&
            cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
                cudaSuccess &&
            cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ==
                cudaSuccess)
            return major * 10 + minor;
        return 0;
    }
    cudnn_device_describe(d, json, sizeof json);
    at = strstr(json, key);
    return at ? (int)strtol(at + sizeof key - 1, NULL, 10) / 10 : 0;
}

static cudnnStatus_t describe_device(struct cudnn_device *d, const char *json)
{
    cudnnStatus_t s =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d->properties);

    if (s == CUDNN_STATUS_SUCCESS && json)
        s = cudnnBackendSetAttribute(d->properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                     CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    else if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendSetAttribute(d->properties, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE,
                                     1, &d->handle);
    return s == CUDNN_STATUS_SUCCESS ? cudnnBackendFinalize(d->properties) : s;
}

struct cudnn_device *cudnn_device_open(const char *json, struct err *e)
{
    struct cudnn_device *d = mem_take(sizeof *d);
    cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
    char why[1024];

    if (!json)
        s = cudnnCreate(&d->handle);
    if (s == CUDNN_STATUS_SUCCESS)
        s = describe_device(d, json);
    if (s != CUDNN_STATUS_SUCCESS) {
        last_words(s, why, sizeof why);
        cudnn_device_close(d);
        err_set(e, E_RESOURCE, "cuDNN cannot use the device: %s", why);
        return NULL;
    }
    d->capability = capability_of(d);
    return d;
}

void cudnn_device_close(struct cudnn_device *d)
{
    if (!d)
        return;
    if (d->properties)
        cudnnBackendDestroyDescriptor(d->properties);
    if (d->handle)
        cudnnDestroy(d->handle);
    mem_give(d);
}
