#include "hf/safetensors.h"

#include "base/arena.h"
#include "hf/json_text.h"

#include <string.h>

enum { DATA_ALIGN = 4096 };

struct st_writer {
    struct file f;
    struct st_tensor *tensor;
    int n;
    int64_t missing; /* bytes that nobody put yet */
};

static void header_entry(struct json_text *h, const struct st_tensor *t, int64_t begin)
{
    json_text_string(h, t->name, strlen(t->name));
    json_text_add(h, ":{\"dtype\":\"%s\",\"shape\":[", st_type_name(t->dtype));
    for (int d = 0; d < t->nd; d++)
        json_text_add(h, "%s%lld", d ? "," : "", (long long)t->shape[d]);
    json_text_add(h, "],\"data_offsets\":[%lld,%lld]}", (long long)begin,
                  (long long)(begin + t->end - t->begin));
}

/* begin, end: first relative to the data, then absolute. */
static struct json_text make_header(struct st_tensor *t, int n)
{
    struct json_text h = { 0 };
    int64_t at = 0, data;

    json_text_add(&h, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < n; i++) {
        struct box b = box_whole(t[i].nd, t[i].shape);

        t[i].begin = at;
        t[i].end = at + box_count(&b) * (int64_t)dtype_size(t[i].dtype);
        json_text_add(&h, ",");
        header_entry(&h, &t[i], at);
        at = t[i].end;
    }
    json_text_add(&h, "}");
    data = ceil_div((int64_t)h.n + 8, DATA_ALIGN) * DATA_ALIGN;
    json_text_add(&h, "%*s", (int)(data - 8 - (int64_t)h.n), "");
    for (int i = 0; i < n; i++) {
        t[i].begin += data;
        t[i].end += data;
    }
    return h;
}

enum status st_writer_open(struct st_writer **w, const char *path, struct st_tensor *tensors, int n,
                           struct err *e)
{
    struct st_writer *x = mem_take(sizeof *x);
    struct json_text h = make_header(tensors, n);
    unsigned char b[8];
    enum status st;

    *w = NULL;
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)((uint64_t)h.n >> (8 * i));
    st = file_open(&x->f, path, FILE_CREATE, e);
    if (st == OK)
        st = file_write_at(&x->f, b, sizeof b, 0, e);
    if (st == OK)
        st = file_write_at(&x->f, h.s, h.n, sizeof b, e);
    mem_give(h.s);
    if (st != OK) {
        file_close(&x->f, NULL);
        mem_give(x);
        return st;
    }
    x->n = n;
    x->tensor = mem_take((size_t)n * sizeof *tensors);
    memcpy(x->tensor, tensors, (size_t)n * sizeof *tensors);
    if (n)
        x->missing = tensors[n - 1].end - tensors[0].begin;
    *w = x;
    return OK;
}

enum status st_writer_put(struct st_writer *w, int tensor, int64_t first_element, const void *data,
                          int64_t n, struct err *e)
{
    const struct st_tensor *t = &w->tensor[tensor];
    int64_t size = (int64_t)dtype_size(t->dtype), at = t->begin + first_element * size;

    BUG_IF(first_element < 0 || n < 0 || at + n * size > t->end);
    w->missing -= n * size;
    return file_write_at(&w->f, data, (size_t)(n * size), at, e);
}

enum status st_writer_close(struct st_writer *w, struct err *e)
{
    enum status st = OK, closed;

    if (w->missing)
        st = err_set(e, E_BUG, "%s: %lld bytes of data were never written", w->f.path,
                     (long long)w->missing);
    if (st == OK)
        st = file_sync(&w->f, e);
    closed = file_close(&w->f, e);
    mem_give(w->tensor);
    mem_give(w);
    return st == OK ? closed : st;
}

enum status st_write_index(const char *path, const struct st_tensor *tensors, int n,
                           const char *const *file_of, int64_t total_bytes, struct err *e)
{
    struct json_text t = { 0 };
    enum status st;

    json_text_add(&t, "{\n  \"metadata\": {\n    \"total_size\": %lld\n  },\n  \"weight_map\": {",
                  (long long)total_bytes);
    for (int i = 0; i < n; i++) {
        json_text_add(&t, "%s\n    ", i ? "," : "");
        json_text_string(&t, tensors[i].name, strlen(tensors[i].name));
        json_text_add(&t, ": ");
        json_text_string(&t, file_of[i], strlen(file_of[i]));
    }
    json_text_add(&t, "\n  }\n}\n");
    st = file_write_whole(path, t.s, t.n, e);
    mem_give(t.s);
    return st;
}
