/* The result file of jsonl lines. */
#ifndef INFER_LINES_H
#define INFER_LINES_H
#include "base/file.h"
#include "hf/json_text.h"

struct lines {
    struct file f;
    struct json_text t; /* what is not written yet; the caller adds to it */
    int64_t at;
};
enum status lines_open(struct lines *l, const char *path, struct err *e) LOCAL;
enum status lines_end_line(struct lines *l, struct err *e) LOCAL;
/* Writes the rest if st is OK, and syncs; closes in any case. Returns st or what went wrong. */
enum status lines_close(struct lines *l, enum status st, struct err *e) LOCAL;
/* A number that JSON has; not a number: null. */
void lines_real(struct lines *l, double x) LOCAL;
#endif
