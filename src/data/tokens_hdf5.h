/* Reads our own token file. Called by tokens.c only. */
#ifndef DATA_TOKENS_HDF5_H
#define DATA_TOKENS_HDF5_H
#include "base/file.h"
#include "data/tokens.h"

/* f: t->path, open; its first bytes are HDF5's. */
enum status tokens_hdf5_open(struct tokens *t, struct file *f, struct err *e) LOCAL;
#endif
