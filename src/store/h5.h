/* The few HDF5 calls of the program: skeletons (contiguous, allocated early, never filled, no
 * filters, aligned), attributes, offsets, virtual datasets. Data bytes are pwritten by base/file at
 * the offsets. Main thread only. */
#ifndef STORE_H5_H
#define STORE_H5_H
#include "base/box.h"
#include "base/dtype.h"
#include "base/err.h"

struct h5; /* an open HDF5 file */
/* A new file. alignment: of large data, bytes. for_index: virtual datasets need a newer format. */
enum status h5_create(struct h5 **f, const char *path, int64_t alignment, int for_index,
                      struct err *e) LOCAL;
enum status h5_open(struct h5 **f, const char *path, struct err *e) LOCAL; /* read-only, no lock */
enum status h5_close(struct h5 *f, struct err *e) LOCAL;                   /* NULL is fine */

/* name may hold '/'; groups are made. nd 0..4. *offset: absolute byte offset of the data, 0 when
 * there are no elements. */
enum status h5_dataset(struct h5 *f, const char *name, enum dtype t, int nd, const int64_t *shape,
                       int64_t *offset, struct err *e) LOCAL;
/* name: the object ("/" for the root) */
enum status h5_set_text(struct h5 *f, const char *object, const char *attribute, const char *value,
                        struct err *e) LOCAL;
enum status h5_set_i64(struct h5 *f, const char *object, const char *attribute, const int64_t *v,
                       int n, struct err *e) LOCAL; /* n 1: a scalar */
enum status h5_set_f64(struct h5 *f, const char *object, const char *attribute, double v,
                       struct err *e) LOCAL;
enum status h5_get_text(struct h5 *f, const char *object, const char *attribute, char *value,
                        size_t max, struct err *e) LOCAL;
enum status h5_get_i64(struct h5 *f, const char *object, const char *attribute, int64_t *v, int n,
                       struct err *e) LOCAL;
int h5_has(struct h5 *f, const char *name) LOCAL;
/* A contiguous dataset without filters: type, shape, absolute offset. Anything else: E_FILE. */
enum status h5_find(struct h5 *f, const char *name, enum dtype *t, int *nd, int64_t shape[BOX_MAX],
                    int64_t *offset, struct err *e) LOCAL;

struct h5_part {                 /* a slab of a virtual dataset */
    char file[64], dataset[256]; /* file name relative to the index */
    struct box where;            /* in the whole; the source dataset has exactly this extent */
};
enum status h5_virtual(struct h5 *f, const char *name, enum dtype t, int nd, const int64_t *shape,
                       const struct h5_part *parts, int nparts, struct err *e) LOCAL;
const char *h5_version(void) LOCAL; /* "HDF5 1.10.8" */
#endif
