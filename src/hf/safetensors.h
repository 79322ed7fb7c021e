/* safetensors: read one tensor's slab of a folder or file; write a file with known shapes in one
 * stream. Hostile headers are refused (E_FILE) with file, tensor and reason; nothing outside the
 * folder is opened. */
#ifndef HF_SAFETENSORS_H
#define HF_SAFETENSORS_H
#include "base/box.h"
#include "base/dtype.h"
#include "base/file.h"

struct st_tensor {
    char name[256];
    enum dtype dtype;
    int nd;
    int64_t shape[BOX_MAX];
    int64_t begin, end; /* absolute byte offsets in its file */
    int file;
};
struct st_model { /* all tensors of model.safetensors or of the shards named by
                     model.safetensors.index.json */
    struct st_tensor *tensor;
    int n; /* sorted by name */
    struct file *file;
    int nfiles;
};
/* dir: a folder; or a single .safetensors file. Opens and validates headers only. In a folder a
 * link is followed only when it stays inside, or inside ../../blobs (the hub's cache). On failure
 * *m is closed. */
enum status st_open(struct st_model *m, const char *dir, struct err *e) LOCAL;
void st_close(struct st_model *m) LOCAL;
const struct st_tensor *st_find(const struct st_model *m, const char *name) LOCAL; /* NULL */
/* Elements of `what` (row-major, box of the whole tensor) converted to `to`. Bounded memory. */
enum status st_read_box(const struct st_model *m, const struct st_tensor *t, const struct box *what,
                        void *dst, enum dtype to, struct err *e) LOCAL;

/* "F32", "BF16", ... */
const char *st_type_name(enum dtype t) LOCAL;

struct st_writer;
/* tensors: name, dtype, nd, shape are given; begin, end are filled in. The order given is the order
 * in the file. Header padded so that data starts at a multiple of 4096; __metadata__
 * {"format":"pt"}. path must not exist (the caller writes beside and renames). */
enum status st_writer_open(struct st_writer **w, const char *path, struct st_tensor *tensors, int n,
                           struct err *e) LOCAL;
enum status st_writer_put(struct st_writer *w, int tensor, int64_t first_element, const void *data,
                          int64_t n, struct err *e) LOCAL;
enum status st_writer_close(struct st_writer *w,
                            struct err *e) LOCAL; /* syncs; frees w, also on failure */
/* model.safetensors.index.json */
enum status st_write_index(const char *path, const struct st_tensor *tensors, int n,
                           const char *const *file_of, int64_t total_bytes, struct err *e) LOCAL;
#endif
