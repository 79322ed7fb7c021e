#include "cudnn_run.h"

#include "base/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of the graph. Virtual ones live in doubles, rounded to their type when written; they are
 * NaN until then. */
struct view {
    const struct descriptor *d;
    int64_t id, dim[4], stride[4];
    cudnnDataType_t type;
    char *memory;
    double *made;  /* virtual */
    double *value; /* by value: points to number */
    double number;
};

enum { VIEWS = 64 };

struct machine {
    const struct cudnn_run *run;
    struct view view[VIEWS];
    int views;
};

static void broken(const char *what, int64_t id)
{
    fprintf(stderr, "emulated cuDNN: tensor %lld: %s\n", (long long)id, what);
    abort();
}

/* ---- elements ---- */

static double rounded(cudnnDataType_t type, double x)
{
    switch (type) {
    case CUDNN_DATA_BFLOAT16:
        return dtype_bf16_to_f32(dtype_f32_to_bf16((float)x));
    case CUDNN_DATA_HALF:
        return dtype_f16_to_f32(dtype_f32_to_f16((float)x));
    case CUDNN_DATA_BOOLEAN:
        return x != 0;
    default:
        return (float)x;
    }
}

static double get_at(const struct view *v, int64_t at)
{
    if (v->value)
        return *v->value;
    if (v->made)
        return v->made[at];
    switch (v->type) {
    case CUDNN_DATA_FLOAT:
        return ((const float *)(const void *)v->memory)[at];
    case CUDNN_DATA_BFLOAT16:
        return dtype_bf16_to_f32(((const uint16_t *)(const void *)v->memory)[at]);
    case CUDNN_DATA_HALF:
        return dtype_f16_to_f32(((const uint16_t *)(const void *)v->memory)[at]);
    default:
        broken("real tensors have float types", v->id);
        return 0;
    }
}

static void put_at(struct view *v, int64_t at, double x)
{
    if (v->value)
        broken("a number is written", v->id);
    else if (v->made)
        v->made[at] = rounded(v->type, x);
    else if (v->type == CUDNN_DATA_FLOAT)
        ((float *)(void *)v->memory)[at] = (float)x;
    else if (v->type == CUDNN_DATA_BFLOAT16)
        ((uint16_t *)(void *)v->memory)[at] = dtype_f32_to_bf16((float)x);
    else
        ((uint16_t *)(void *)v->memory)[at] = dtype_f32_to_f16((float)x);
}

/* Dimensions of size 1 are spread; groups of heads share one. */
static int64_t place(const struct view *v, const int64_t i[4], int64_t heads)
{
    int64_t at = 0;

    for (int k = 0; k < 4; k++) {
        int64_t index = v->dim[k] == 1 ? 0 : i[k];
        if (k == 1 && v->dim[1] > 1)
            index = i[1] / (heads / v->dim[1]);
        if (index >= v->dim[k])
            broken("an index is outside", v->id);
        at += index * v->stride[k];
    }
    return at;
}

static int next(int64_t i[4], const int64_t dim[4])
{
    for (int k = 3; k >= 0; k--) {
        if (++i[k] < dim[k])
            return 1;
        i[k] = 0;
    }
    return 0;
}

/* ---- tensors ---- */

static void open_memory(struct view *v, const struct cudnn_run *r)
{
    int64_t align = descriptor_int64(v->d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)[0], span = 1;
    int at = run_binds(r, v->id);

    if (descriptor_flag(v->d, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
        for (int k = 0; k < 4; k++)
            span += (v->dim[k] - 1) * v->stride[k];
        v->made = malloc((size_t)span * sizeof *v->made);
        for (int64_t i = 0; i < span; i++)
            v->made[i] = NAN;
        return;
    }
    if (at < 0)
        broken("not in the variant pack", v->id);
    if (descriptor_flag(v->d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {
        v->number = r->value[at];
        v->value = &v->number;
        return;
    }
    v->memory = r->pointer[at];
    if ((uintptr_t)v->memory % (uintptr_t)align)
        broken("its address is not aligned", v->id);
}

static struct view *view_of(struct machine *m, const struct descriptor *d)
{
    int64_t id = descriptor_int64(d, CUDNN_ATTR_TENSOR_UNIQUE_ID)[0];
    struct view *v;

    for (int i = 0; i < m->views; i++) {
        if (m->view[i].id == id)
            return &m->view[i];
    }
    if (m->views == VIEWS)
        broken("too many tensors", id);
    v = &m->view[m->views++];
    v->d = d;
    v->id = id;
    memcpy(v->dim, descriptor_int64(d, CUDNN_ATTR_TENSOR_DIMENSIONS), sizeof v->dim);
    memcpy(v->stride, descriptor_int64(d, CUDNN_ATTR_TENSOR_STRIDES), sizeof v->stride);
    v->type = (cudnnDataType_t)descriptor_enum(d, CUDNN_ATTR_TENSOR_DATA_TYPE);
    open_memory(v, m->run);
    return v;
}

static struct view *operand(struct machine *m, const struct descriptor *o,
                            cudnnBackendAttributeName_t name)
{
    return descriptor_find(o, name) ? view_of(m, descriptor_get(o, name)) : NULL;
}

/* ---- operations ---- */

static double combine(cudnnPointwiseMode_t mode, double x, double b, double t)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0 ? x : b;
    default:
        broken("an operation that is not emulated", (int64_t)mode);
        return 0;
    }
}

static void run_pointwise(struct machine *m, const struct descriptor *o)
{
    const struct descriptor *how = descriptor_get(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    cudnnPointwiseMode_t mode =
        (cudnnPointwiseMode_t)descriptor_enum(how, CUDNN_ATTR_POINTWISE_MODE);
    struct view *x = operand(m, o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    struct view *b = operand(m, o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    struct view *t = operand(m, o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    struct view *y = operand(m, o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    int64_t i[4] = { 0 };

    do {
        double value;

        if (mode == CUDNN_POINTWISE_GEN_INDEX)
            value = (double)i[descriptor_int64(how, CUDNN_ATTR_POINTWISE_AXIS)[0]];
        else
            value = combine(mode, get_at(x, place(x, i, y->dim[1])),
                            b ? get_at(b, place(b, i, y->dim[1])) : 0,
                            t ? get_at(t, place(t, i, y->dim[1])) : 0);
        put_at(y, place(y, i, y->dim[1]), value);
    } while (next(i, y->dim));
}

/* Reduced are dimensions of y that are 1, and heads in groups. */
static void run_reduction(struct machine *m, const struct descriptor *o)
{
    const struct descriptor *how = descriptor_get(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    int is_sum = descriptor_enum(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_ADD;
    struct view *x = operand(m, o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    struct view *y = operand(m, o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    int64_t i[4] = { 0 }, n = y->dim[0] * y->dim[1] * y->dim[2] * y->dim[3];
    double *sum = malloc((size_t)n * sizeof *sum), *to = sum;

    for (int64_t k = 0; k < n; k++)
        sum[k] = is_sum ? 0 : -INFINITY;
    do { /* y in packed order: place() of a packed view */
        struct view packed = { .dim = { y->dim[0], y->dim[1], y->dim[2], y->dim[3] },
                               .stride = { y->dim[1] * y->dim[2] * y->dim[3], y->dim[2] * y->dim[3],
                                           y->dim[3], 1 } };
        double value = get_at(x, place(x, i, x->dim[1]));

        to = &sum[place(&packed, i, x->dim[1])];
        *to = is_sum ? *to + value : fmax(*to, value);
    } while (next(i, x->dim));
    to = sum;
    memset(i, 0, sizeof i);
    do
        put_at(y, place(y, i, y->dim[1]), *to++);
    while (next(i, y->dim));
    free(sum);
}

static void run_matmul(struct machine *m, const struct descriptor *o)
{
    struct view *a = operand(m, o, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    struct view *b = operand(m, o, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    struct view *c = operand(m, o, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    int64_t i[4] = { 0 };

    if (a->dim[3] != b->dim[2] || a->dim[2] != c->dim[2] || b->dim[3] != c->dim[3])
        broken("the sizes of a product do not fit", c->id);
    do {
        int64_t at_a = place(a, (int64_t[]){ i[0], i[1], i[2], 0 }, c->dim[1]);
        int64_t at_b = place(b, (int64_t[]){ i[0], i[1], 0, i[3] }, c->dim[1]);
        double sum = 0;

        for (int64_t k = 0; k < a->dim[3]; k++)
            sum += get_at(a, at_a + k * a->stride[3]) * get_at(b, at_b + k * b->stride[2]);
        put_at(c, place(c, i, c->dim[1]), sum);
    } while (next(i, c->dim));
}

/* The same memory under other dimensions and strides. */
static void run_reshape(struct machine *m, const struct descriptor *o)
{
    struct view *x = operand(m, o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    struct view *y = operand(m, o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    int64_t i[4] = { 0 };

    do {
        int64_t at = place(y, i, y->dim[1]);

        put_at(y, at, get_at(x, at));
    } while (next(i, y->dim));
}

static void run_operation(struct machine *m, const struct descriptor *o)
{
    switch (o->type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        run_pointwise(m, o);
        break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        run_reduction(m, o);
        break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        run_matmul(m, o);
        break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        run_reshape(m, o);
        break;
    default:
        broken("an operation that is not emulated", (int64_t)o->type);
    }
}

/* The workspace is filled with NaN: what overlaps it is found. */
void cudnn_run(void *run)
{
    struct cudnn_run *r = run;
    const struct attribute *ops = descriptor_find(r->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    struct machine m = { .run = r };

    for (int64_t i = 0; i < ops->n; i++) {
        memset(r->workspace, 0xff, EMULATED_WORKSPACE);
        run_operation(&m, ((struct descriptor *const *)ops->values)[i]);
    }
    for (int i = 0; i < m.views; i++)
        free(m.view[i].made);
    free(r);
}
