/* A checkpoint of any layout -> one model. Streams: memory at most twice the largest tensor. */
#ifndef CONVERT_EXPORT_H
#define CONVERT_EXPORT_H
#include "checkpoint/checkpoint.h"

struct export_options {
    const char *checkpoint, *out; /* out: a folder (safetensors) or a file (hdf5) */
    int hdf5;                     /* format                                       */
    int dtype;                    /* enum dtype, or -1: the masters'              */
    int with_optimizer;           /* hdf5 only (E_INPUT otherwise)                */
    int64_t max_shard_bytes;
};
/* Written beside and renamed; an earlier export of ours is replaced, anything else refused
 * (E_INPUT). float16 overflow: E_NUMERIC, naming the tensor. */
enum status export_model(const struct export_options *o, struct err *e) LOCAL;
#endif
