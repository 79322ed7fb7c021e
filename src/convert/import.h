/* Initial weights from a Hugging Face folder. */
#ifndef CONVERT_IMPORT_H
#define CONVERT_IMPORT_H
#include "hf/safetensors.h"
#include "optim/optim.h"

/* Headers only: every tensor of the model is there with its shape, and none that the model lacks.
 * E_FILE: all that is wrong, by name, with both shapes. */
enum status import_check(const char *dir, const struct dims *d, struct err *e) LOCAL;
/* Each rank reads only its slabs. */
enum status import_weights(const char *dir, struct optim *o, struct err *e) LOCAL;
#endif
