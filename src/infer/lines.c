#include "infer/lines.h"

#include <math.h>

#include "base/arena.h"

enum { PIECE = 1 << 20 };

enum status lines_open(struct lines *l, const char *path, struct err *e)
{
    *l = (struct lines){ .f = { .fd = -1 } };
    return file_open(&l->f, path, FILE_CREATE, e);
}

static enum status flush(struct lines *l, struct err *e)
{
    enum status st = file_write_at(&l->f, l->t.s, l->t.n, l->at, e);

    l->at += (int64_t)l->t.n;
    l->t.n = 0;
    return st;
}

enum status lines_end_line(struct lines *l, struct err *e)
{
    json_text_add(&l->t, "\n");
    return l->t.n < PIECE ? OK : flush(l, e);
}

enum status lines_close(struct lines *l, enum status st, struct err *e)
{
    if (st == OK && l->t.n)
        st = flush(l, e);
    if (st == OK)
        st = file_sync(&l->f, e);
    mem_give(l->t.s);
    l->t.s = NULL;
    return st == OK ? file_close(&l->f, e) : (file_close(&l->f, NULL), st);
}

void lines_real(struct lines *l, double x)
{
    if (isfinite(x))
        json_text_real(&l->t, x);
    else
        json_text_add(&l->t, "null");
}
