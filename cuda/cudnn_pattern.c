#include "cuda/cudnn_pattern.h"

/* The order of operations and the types of virtual tensors are part of the pattern: scores are F32,
 * what enters a product is of the inputs' type, places are int32. */
struct pattern {
    struct cudnn_graph *g;
    const struct attention_pattern *a;
    struct cudnn_tensor scale;
};

/* ---- tensors ---- */

/* [B, heads, S, K] of packed rows */
static struct cudnn_tensor rows(struct pattern *p, int64_t id, int64_t heads, int64_t ld)
{
    const struct attention_pattern *a = p->a;

    return graph_tensor(p->g, id, TENSOR_REAL, a->type, (int64_t[]){ a->B, heads, a->S, a->K },
                        (int64_t[]){ a->S * ld, a->K, ld, 1 });
}

/* Keys or values as the right factor of rows x rows: [B, G, K, S] */
static struct cudnn_tensor turned_rows(struct pattern *p, int64_t id)
{
    const struct attention_pattern *a = p->a;

    return graph_tensor(p->g, id, TENSOR_REAL, a->type, (int64_t[]){ a->B, a->G, a->K, a->S },
                        (int64_t[]){ a->S * a->ldkv, a->K, 1, a->ldkv });
}

static struct cudnn_tensor statistic(struct pattern *p, int64_t id)
{
    const struct attention_pattern *a = p->a;

    return graph_tensor(p->g, id, TENSOR_REAL, CUDNN_DATA_FLOAT, (int64_t[]){ a->B, a->H, a->S, 1 },
                        (int64_t[]){ a->S, a->statistics, 1, 1 });
}

static struct cudnn_tensor scalar(struct pattern *p, int64_t id)
{
    static const int64_t one[4] = { 1, 1, 1, 1 };

    return graph_tensor(p->g, id, TENSOR_BY_VALUE, CUDNN_DATA_FLOAT, one, one);
}

/* Virtual and packed: [B, H, n, columns] */
static struct cudnn_tensor between(struct pattern *p, cudnnDataType_t type, int64_t columns)
{
    const struct attention_pattern *a = p->a;

    return graph_tensor(p->g, 0, TENSOR_VIRTUAL, type, (int64_t[]){ a->B, a->H, a->S, columns },
                        (int64_t[]){ a->H * a->S * columns, a->S * columns, columns, 1 });
}

/* ---- operations on scores [B, H, S, S] ---- */

static struct cudnn_tensor apply(struct pattern *p, cudnnPointwiseMode_t mode,
                                 const struct cudnn_tensor *x, const struct cudnn_tensor *b)
{
    struct cudnn_tensor y = between(p, CUDNN_DATA_FLOAT, x->dim[3]);

    graph_pointwise(
        p->g,
        &(struct cudnn_pointwise){ .mode = mode, .compute = CUDNN_DATA_FLOAT, .x = x, .b = b }, &y);
    return y;
}

static struct cudnn_tensor places(struct pattern *p, const struct cudnn_tensor *scores, int axis)
{
    struct cudnn_tensor y = between(p, CUDNN_DATA_INT32, p->a->S);

    graph_pointwise(p->g,
                    &(struct cudnn_pointwise){ .mode = CUDNN_POINTWISE_GEN_INDEX,
                                               .compute = CUDNN_DATA_FLOAT,
                                               .x = scores,
                                               .axis = axis },
                    &y);
    return y;
}

/* query >= key ? score : -infinity */
static struct cudnn_tensor mask(struct pattern *p, const struct cudnn_tensor *scores)
{
    struct cudnn_tensor query = places(p, scores, 2), key = places(p, scores, 3);
    struct cudnn_tensor seen = between(p, CUDNN_DATA_BOOLEAN, p->a->S);
    struct cudnn_tensor never = scalar(p, ID_MINUS_INFINITY);
    struct cudnn_tensor y = between(p, CUDNN_DATA_FLOAT, p->a->S);

    graph_pointwise(
        p->g,
        &(struct cudnn_pointwise){
            .mode = CUDNN_POINTWISE_CMP_GE, .compute = CUDNN_DATA_BOOLEAN, .x = &query, .b = &key },
        &seen);
    graph_pointwise(p->g,
                    &(struct cudnn_pointwise){ .mode = CUDNN_POINTWISE_BINARY_SELECT,
                                               .compute = CUDNN_DATA_FLOAT,
                                               .x = scores,
                                               .b = &never,
                                               .t = &seen },
                    &y);
    return y;
}

static struct cudnn_tensor over_keys(struct pattern *p, cudnnReduceTensorOp_t how,
                                     const struct cudnn_tensor *x)
{
    struct cudnn_tensor y = between(p, CUDNN_DATA_FLOAT, 1);

    graph_reduce(p->g, how, x, &y);
    return y;
}

static struct cudnn_tensor product(struct pattern *p, const struct cudnn_tensor *rows_of_q,
                                   const struct cudnn_tensor *turned)
{
    struct cudnn_tensor y = between(p, CUDNN_DATA_FLOAT, p->a->S);

    graph_matmul(p->g, rows_of_q, turned, &y);
    return y;
}

/* [B, H, keys, queries], rounded to the inputs' type */
static struct cudnn_tensor transpose(struct pattern *p, const struct cudnn_tensor *scores)
{
    const struct attention_pattern *a = p->a;
    struct cudnn_tensor y =
        graph_tensor(p->g, 0, TENSOR_VIRTUAL, a->type, (int64_t[]){ a->B, a->H, a->S, a->S },
                     (int64_t[]){ a->H * a->S * a->S, a->S * a->S, 1, a->S });

    graph_reshape(p->g, scores, &y);
    return y;
}

/* dk or dv: turned scores x rows, summed over the query heads of a key head */
static void key_gradient(struct pattern *p, const struct cudnn_tensor *turned,
                         const struct cudnn_tensor *x, int64_t id)
{
    struct cudnn_tensor y = rows(p, id, p->a->G, p->a->ldkv), full;

    if (p->a->G == p->a->H) {
        graph_matmul(p->g, turned, x, &y);
        return;
    }
    full = between(p, p->a->type, p->a->K);
    graph_matmul(p->g, turned, x, &full);
    graph_reduce(p->g, CUDNN_REDUCE_TENSOR_ADD, &full, &y);
}

/* dq = ds k */
static void query_gradient(struct pattern *p, const struct cudnn_tensor *ds,
                           const struct cudnn_tensor *turned_k)
{
    const struct attention_pattern *a = p->a;
    struct cudnn_tensor dq = rows(p, ID_DQ, a->H, a->ldq), sum;
    struct cudnn_tensor k =
        graph_tensor(p->g, 0, TENSOR_VIRTUAL, a->type, (int64_t[]){ a->B, a->G, a->S, a->K },
                     (int64_t[]){ a->S * a->ldkv, a->K, a->ldkv, 1 });

    graph_reshape(p->g, turned_k, &k);
    if (a->deterministic) {
        graph_matmul(p->g, ds, &k, &dq);
        return;
    }
    sum = graph_tensor(p->g, ID_DQ_SUM, TENSOR_REAL, CUDNN_DATA_FLOAT,
                       (int64_t[]){ a->B, a->H, a->S, a->K },
                       (int64_t[]){ a->H * a->S * a->K, a->S * a->K, a->K, 1 });
    graph_matmul(p->g, ds, &k, &sum);
    graph_pointwise(p->g,
                    &(struct cudnn_pointwise){
                        .mode = CUDNN_POINTWISE_IDENTITY, .compute = CUDNN_DATA_FLOAT, .x = &sum },
                    &dq);
}

/* ---- the two graphs ---- */

/* o = softmax(scale q k^T) v, lse = max + log(sum exp(score - max)) */
void pattern_forward(struct cudnn_graph *g, const struct attention_pattern *a)
{
    struct pattern p = { .g = g, .a = a };
    struct cudnn_tensor q = rows(&p, ID_Q, a->H, a->ldq), k = turned_rows(&p, ID_K);
    struct cudnn_tensor v = rows(&p, ID_V, a->G, a->ldkv), o = rows(&p, ID_O, a->H, a->ldo);
    struct cudnn_tensor lse = statistic(&p, ID_LSE), x, top, sum, log_sum, weights;

    p.scale = scalar(&p, ID_SCALE);
    x = product(&p, &q, &k);
    x = apply(&p, CUDNN_POINTWISE_MUL, &x, &p.scale);
    x = mask(&p, &x);
    top = over_keys(&p, CUDNN_REDUCE_TENSOR_MAX, &x);
    x = apply(&p, CUDNN_POINTWISE_SUB, &x, &top);
    x = apply(&p, CUDNN_POINTWISE_EXP, &x, NULL);
    sum = over_keys(&p, CUDNN_REDUCE_TENSOR_ADD, &x);
    log_sum = apply(&p, CUDNN_POINTWISE_LOG, &sum, NULL);
    graph_pointwise(
        g,
        &(struct cudnn_pointwise){
            .mode = CUDNN_POINTWISE_ADD, .compute = CUDNN_DATA_FLOAT, .x = &top, .b = &log_sum },
        &lse);
    weights = between(&p, a->type, a->S);
    graph_pointwise(
        g,
        &(struct cudnn_pointwise){
            .mode = CUDNN_POINTWISE_DIV, .compute = CUDNN_DATA_FLOAT, .x = &x, .b = &sum },
        &weights);
    graph_matmul(g, &weights, &v, &o);
}

/* delta = sum over K of dout o */
static struct cudnn_tensor grad_delta(struct pattern *p, const struct cudnn_tensor *dout)
{
    struct cudnn_tensor o = rows(p, ID_O, p->a->H, p->a->ldo), one = scalar(p, ID_ONE);
    struct cudnn_tensor delta = statistic(p, ID_DELTA);
    struct cudnn_tensor x = apply(p, CUDNN_POINTWISE_MUL, dout, &o);

    x = over_keys(p, CUDNN_REDUCE_TENSOR_ADD, &x);
    graph_pointwise(
        p->g,
        &(struct cudnn_pointwise){
            .mode = CUDNN_POINTWISE_MUL, .compute = CUDNN_DATA_FLOAT, .x = &x, .b = &one },
        &delta);
    return delta;
}

/* w = exp(scale q k^T - lse); dv = w^T dout; ds = w (dout v^T - delta) scale; dk = ds^T q; dq = ds
 * k */
void pattern_grad(struct cudnn_graph *g, const struct attention_pattern *a)
{
    struct pattern p = { .g = g, .a = a };
    struct cudnn_tensor q = rows(&p, ID_Q, a->H, a->ldq), k = turned_rows(&p, ID_K);
    struct cudnn_tensor v = turned_rows(&p, ID_V), dout = rows(&p, ID_DOUT, a->H, a->ldo);
    struct cudnn_tensor lse = statistic(&p, ID_LSE), delta, x, w, turned;

    p.scale = scalar(&p, ID_SCALE);
    delta = grad_delta(&p, &dout);
    x = product(&p, &q, &k);
    x = apply(&p, CUDNN_POINTWISE_MUL, &x, &p.scale);
    x = apply(&p, CUDNN_POINTWISE_SUB, &x, &lse);
    x = mask(&p, &x);
    w = apply(&p, CUDNN_POINTWISE_EXP, &x, NULL);
    turned = transpose(&p, &w);
    key_gradient(&p, &turned, &dout, ID_DV);
    x = product(&p, &dout, &v);
    x = apply(&p, CUDNN_POINTWISE_SUB, &x, &delta);
    x = apply(&p, CUDNN_POINTWISE_MUL, &x, &w);
    x = apply(&p, CUDNN_POINTWISE_MUL, &x, &p.scale);
    turned = transpose(&p, &x);
    key_gradient(&p, &turned, &q, ID_DK);
    query_gradient(&p, &x, &k);
}
