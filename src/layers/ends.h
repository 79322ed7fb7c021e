/* The two ends of the model: embedding, and final norm + head + loss. Both are cut over the
 * vocabulary. */
#ifndef LAYERS_ENDS_H
#define LAYERS_ENDS_H
#include "layers/layer.h"

void embedding_forward(struct env *e, struct operand x, const struct micro_batch *mb)
    COLL(tp); /* x [Ts, D] */
void embedding_grad(struct env *e, struct operand dx, const struct micro_batch *mb)
    COLL(tp); /* dx [Ts, D] */
/* x [Ts, D]. Adds the summed loss of counted labels to *loss (F64). scale: d(objective)/d(token
 * loss), 1 / counted labels of the global batch. dx [Ts, D] gets the gradient and the head's
 * weights theirs at once: a row of logits is never stored twice. dx NONE: evaluation. Where the
 * micro-batch asks for logits, these and nothing else. */
void head_forward(struct env *e, struct operand x, struct operand dx, dptr loss, double scale,
                  const struct micro_batch *mb) COLL(tp);
/* Row `row` of `rows` rows of a micro-batch's logits, as they were downloaded: where its V values
 * are, copied to `to` when tp cut them (to: V values of the same type). */
const void *head_unpack(const struct env *e, const void *logits, int64_t rows, int64_t row,
                        void *to) LOCAL;
#endif
