/* What the files of store/ share. Includes HDF5: nobody else may. */
#ifndef STORE_H5_FILE_H
#define STORE_H5_FILE_H
#include <hdf5.h>

#include "store/h5.h"

struct h5 {
    hid_t file;
    char path[4096];
};

/* "PATH: HDF5 cannot DOING NAME: the deepest reason on its stack"; name may be NULL. E_FILE. */
enum status h5_fail(const struct h5 *f, struct err *e, const char *doing, const char *name) LOCAL;
hid_t h5_space(int nd, const int64_t *shape) LOCAL; /* the caller closes it */
#endif
