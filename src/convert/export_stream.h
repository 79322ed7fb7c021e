/* What both formats of an export share. */
#ifndef CONVERT_EXPORT_STREAM_H
#define CONVERT_EXPORT_STREAM_H
#include "convert/export.h"
#include "hf/hf_config.h"

enum { EXPORT_CHUNK = 1 << 20 }; /* elements that are in memory at a time */

struct export
{
    const struct export_options *o;
    struct checkpoint c;
    struct params ps; /* the whole model in the order of params.def */
    struct hf_config hf;
    enum dtype dtype; /* of the weights in the export */
    char *from, *to;  /* [EXPORT_CHUNK] before and after the conversion */
};

/* Takes the elements from element `at` on. */
typedef enum status export_sink(void *context, int64_t at, const void *data, int64_t n,
                                struct err *e);
/* One tensor in order, converted (round to nearest even). A value that overflows: E_NUMERIC with
 * its place. */
enum status export_stream(struct export *x, enum checkpoint_kind kind, const struct param *p,
                          enum dtype to, export_sink *sink, void *context, struct err *e) LOCAL;
enum status export_safetensors(struct export *x, const char *folder, struct err *e) LOCAL;
enum status export_hdf5(struct export *x, const char *file, struct err *e) LOCAL;
/* Is what lies at path an earlier export of ours (E_INPUT if not)? Absent, or an empty folder: OK.
 */
enum status export_may_replace_folder(const char *path, struct err *e) LOCAL;
enum status export_may_replace_file(const char *path, struct err *e) LOCAL;
#endif
