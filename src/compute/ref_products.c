#include "compute/ref.h"

#include "base/clock.h"

/* C[m,n] = sum over k of A(m,k) B(n,k), with strides for both axes, so that one loop serves the
 * three products. */
struct product {
    struct operand c, a, b;
    int64_t M, N, K;
    int64_t ldc;
    int64_t a_row, a_col; /* elements from (m,k) to (m+1,k) and to (m,k+1) */
    int64_t b_row, b_col;
    int add;
};

enum { TILE = 4, CHUNK = 128 };

static void load_tile(double tile[CHUNK][TILE], struct operand o, int64_t at, int64_t row,
                      int64_t col, int64_t rows, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < TILE; i++) {
            tile[k][i] = i < rows ? ref_get(o, at + i * row + k * col) : 0;
        }
    }
}

/* Every element is one sum in double with k ascending, whatever the tiles. */
static void product_strip(const struct product *p, int64_t m)
{
    int64_t rows = min_i64(TILE, p->M - m);
    for (int64_t n = 0; n < p->N; n += TILE) {
        int64_t cols = min_i64(TILE, p->N - n);
        double sum[TILE][TILE] = { { 0 } }, a[CHUNK][TILE], b[CHUNK][TILE];
        for (int64_t k = 0; k < p->K; k += CHUNK) {
            int64_t run = min_i64(CHUNK, p->K - k);
            load_tile(a, p->a, m * p->a_row + k * p->a_col, p->a_row, p->a_col, rows, run);
            load_tile(b, p->b, n * p->b_row + k * p->b_col, p->b_row, p->b_col, cols, run);
            for (int64_t l = 0; l < run; l++) {
                for (int i = 0; i < TILE; i++) {
                    for (int j = 0; j < TILE; j++) {
                        sum[i][j] += a[l][i] * b[l][j];
                    }
                }
            }
        }
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < cols; j++) {
                int64_t at = (m + i) * p->ldc + n + j;
                ref_put(p->c, at, p->add ? ref_get(p->c, at) + sum[i][j] : sum[i][j]);
            }
        }
    }
}

static void product_run(struct queue *q, const struct product *p)
{
    REF_ROWS
    for (int64_t m = 0; m < p->M; m += TILE) {
        product_strip(p, m);
    }
}

void ref_linear(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    product_run(q, &(struct product){ .c = y,
                                      .a = x,
                                      .b = w,
                                      .M = T,
                                      .N = N,
                                      .K = K,
                                      .ldc = ldy,
                                      .a_row = ldx,
                                      .a_col = 1,
                                      .b_row = K,
                                      .b_col = 1,
                                      .add = add });
}

void ref_linear_grad_input(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                           int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    product_run(q, &(struct product){ .c = dx,
                                      .a = dy,
                                      .b = w,
                                      .M = T,
                                      .N = K,
                                      .K = N,
                                      .ldc = ldx,
                                      .a_row = ldy,
                                      .a_col = 1,
                                      .b_row = 1,
                                      .b_col = K,
                                      .add = add });
}

void ref_linear_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                            struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K)
{
    product_run(q, &(struct product){ .c = dw,
                                      .a = dy,
                                      .b = x,
                                      .M = N,
                                      .N = K,
                                      .K = T,
                                      .ldc = K,
                                      .a_row = 1,
                                      .a_col = ldy,
                                      .b_row = 1,
                                      .b_col = ldx,
                                      .add = 1 });
}

/* The rate of this backend's own product on operands that stay in cache. */
double ref_measure_peak(struct queue *q, enum dtype t, double seconds)
{
    enum { ROWS = 64, COLS = 64, DEPTH = 256 };
    size_t size = dtype_size(t), rows = (size_t)ROWS * (size_t)q->threads;
    char *block = mem_take(size * (rows * DEPTH + (size_t)COLS * DEPTH + rows * COLS));
    struct operand x = { { block }, t }, w = operand_at(x, (int64_t)rows * DEPTH),
                   y = operand_at(w, (int64_t)COLS * DEPTH);
    for (int64_t i = 0; i < (int64_t)(rows + COLS) * DEPTH; i++) {
        ref_put(x, i, 1e-3 * (double)(i % 97));
    }
    double best = 0, end = clock_now() + seconds;
    do {
        double t0 = clock_now();
        ref_linear(q, y, COLS, x, DEPTH, w, (int64_t)rows, COLS, DEPTH, 0);
        double took = clock_now() - t0;
        if (took > 0 && 2.0 * (double)rows * COLS * DEPTH / took > best) {
            best = 2.0 * (double)rows * COLS * DEPTH / took;
        }
    } while (clock_now() < end);
    mem_give(block);
    return best;
}
