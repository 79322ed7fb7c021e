/* The data that the input names. */
#ifndef TRAIN_SOURCES_H
#define TRAIN_SOURCES_H
#include "data/sampler.h"
#include "input/config.h"

/* The training data; and &data validation, which must be given. E_FILE; E_INPUT: vocab_size is 0
 * and no file says it, or document_mask where documents are not known. With vocab_size > 0 ids must
 * be below it: a sample of them is looked at. */
enum status sources_open_train(struct corpus *t, const struct config *c, struct err *e) LOCAL;
enum status sources_open_validation(struct corpus *v, const struct config *c, struct err *e) LOCAL;
#endif
