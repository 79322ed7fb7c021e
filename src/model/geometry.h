/* How much work and memory a model is (doc/design.md, section 6, FLOP of a step). */
#ifndef MODEL_GEOMETRY_H
#define MODEL_GEOMETRY_H
#include "model/params.h"
int64_t geometry_parameters(const struct dims *d) LOCAL;
/* Model FLOP of one token at sequence length S: 6 x weights used in products (head included,
 * look-up not) + causal half of attention. */
double geometry_flops_per_token(const struct dims *d, int64_t S) LOCAL;
/* Relative cost of one block, the embedding and the head for the split over stages. */
void geometry_stage_costs(const struct dims *d, int64_t S, double *layer, double *embedding,
                          double *head) LOCAL;
#endif
