/* cuDNN's backend API (cudnn_graph.h of cuDNN 9): devices, operation graphs, execution plans.
 * A graph keeps its first failure; later calls on it do nothing, so that only plan_build is asked.
 */
#ifndef CUDA_CUDNN_PLAN_H
#define CUDA_CUDNN_PLAN_H
#include "base/err.h"

#include <cudnn.h>

struct cudnn_device {
    cudnnHandle_t handle; /* NULL: a described device, plans are built but cannot run */
    cudnnBackendDescriptor_t properties;
    int capability; /* 90 = sm_90 */
};

/* json: a device in cuDNN's own description; NULL: the current CUDA device. NULL if it cannot be
 * used, with cuDNN's words in e. */
struct cudnn_device *cudnn_device_open(const char *json, struct err *e) LOCAL;
void cudnn_device_close(struct cudnn_device *d) LOCAL; /* NULL is fine */
/* The description of d, ends with 0; longer ones are cut. */
void cudnn_device_describe(const struct cudnn_device *d, char *json, size_t bytes) LOCAL;

enum { GRAPH_OPERATIONS = 32, GRAPH_DESCRIPTORS = 160 };

struct cudnn_graph {
    cudnnBackendDescriptor_t operation[GRAPH_OPERATIONS], owned[GRAPH_DESCRIPTORS];
    int operations, descriptors;
    int64_t virtuals; /* made so far */
    cudnnStatus_t status;
    char why[1024];
};

struct cudnn_tensor {
    cudnnBackendDescriptor_t d;
    int64_t dim[4], stride[4]; /* batch, heads, rows, columns; elements */
};

enum tensor_kind { TENSOR_REAL, TENSOR_VIRTUAL, TENSOR_BY_VALUE };

/* id: of a real or by-value tensor, below GRAPH_VIRTUAL; of a virtual one it is made. */
enum { GRAPH_VIRTUAL = 100 };
struct cudnn_tensor graph_tensor(struct cudnn_graph *g, int64_t id, enum tensor_kind kind,
                                 cudnnDataType_t type, const int64_t dim[4],
                                 const int64_t stride[4]) LOCAL;

struct cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t compute;
    const struct cudnn_tensor *x, *b, *t; /* b, t may be NULL; t: the condition of a select */
    int axis;                             /* of CUDNN_POINTWISE_GEN_INDEX */
};
void graph_pointwise(struct cudnn_graph *g, const struct cudnn_pointwise *p,
                     const struct cudnn_tensor *y) LOCAL;
/* y = x reduced over the dimensions in which y is smaller; heads of y are sums over groups */
void graph_reduce(struct cudnn_graph *g, cudnnReduceTensorOp_t how, const struct cudnn_tensor *x,
                  const struct cudnn_tensor *y) LOCAL;
/* c [rows of a, columns of b] = a b, F32 accumulation; fewer heads of b are shared by groups of a
 */
void graph_matmul(struct cudnn_graph *g, const struct cudnn_tensor *a, const struct cudnn_tensor *b,
                  const struct cudnn_tensor *c) LOCAL;
void graph_reshape(struct cudnn_graph *g, const struct cudnn_tensor *x,
                   const struct cudnn_tensor *y) LOCAL;
void graph_free(struct cudnn_graph *g) LOCAL;

struct cudnn_plan {
    cudnnBackendDescriptor_t d;
    size_t workspace; /* bytes */
};

/* The first engine configuration of cuDNN's heuristics that can be finalized. E_RESOURCE with
 * cuDNN's words if there is none. The graph must outlive the plan. */
enum status plan_build(struct cudnn_plan *p, struct cudnn_graph *g, const struct cudnn_device *d,
                       struct err *e) LOCAL;
/* n tensors by id; by-value ones point to host memory. Dies with E_PEER: it runs inside a step. */
void plan_run(const struct cudnn_plan *p, const struct cudnn_device *d, const int64_t *id,
              void *const *pointer, int n, void *workspace, const char *what) LOCAL;
void plan_free(struct cudnn_plan *p) LOCAL;
#endif
