#include "model/geometry.h"

/* weights of the products of one block */
static double block_weights(const struct dims *d)
{
    double q = (double)d->H * d->K, kv = (double)d->G * d->K, D = (double)d->D;
    return D * (q + 2 * kv) + q * D + 3 * D * (double)d->F;
}

int64_t geometry_parameters(const struct dims *d)
{
    struct params ps;
    int64_t n;

    params_build_whole(&ps, d);
    n = ps.total_count;
    params_free(&ps);
    return n;
}

/* Products q k^T and p v: 2 x 2 H K S FLOP a token forward, twice that backward; the causal half.
 */
static double attention_flops(const struct dims *d, int64_t S)
{
    return 3 * 4.0 * d->H * d->K * (double)S / 2;
}

double geometry_flops_per_token(const struct dims *d, int64_t S)
{
    return 6 * (d->L * block_weights(d) + (double)d->V * (double)d->D) +
           d->L * attention_flops(d, S);
}

void geometry_stage_costs(const struct dims *d, int64_t S, double *layer, double *embedding,
                          double *head)
{
    *layer = 6 * block_weights(d) + attention_flops(d, S);
    *head = 6 * (double)d->V * (double)d->D;
    *embedding = 24 * (double)d->D; /* a look-up and its sum: memory traffic, not products */
}
