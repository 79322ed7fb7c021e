#include "data/foreign.h"

#include <string.h>

#include "text/utf8.h"

static const struct magic {
    size_t at, n;
    const char *bytes, *what, *cure;
} magics[] = {
    { 0, 9, "MMIDIDX\0\0", "a Megatron index (.idx)", "name its .bin" },
    { 0, 4, "\x88\xd8\x34\x01", "an llm.c token file",
      "it is read as it is; or `pretrain-data convert`" },
    { 0, 4, "\xa1\xd9\x34\x01", "an llm.c token file (Llama 3)",
      "it is read as it is; or `pretrain-data convert`" },
    { 0, 6, "\x93NUMPY", "a NumPy file",
      "write the raw array (tofile), then `pretrain-data import`" },
    { 0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file", "see `pretrain-data info`" },
    { 0, 6, "ARROW1", "an Arrow file", "write its texts as jsonl, then `pretrain-data tokenize`" },
    { 0, 4, "PAR1", "a Parquet file", "write its texts as jsonl, then `pretrain-data tokenize`" },
    { 0, 2, "\x1f\x8b", "a gzip file", "unpack it first (gunzip)" },
    { 0, 4, "\x28\xb5\x2f\xfd", "a zstd file", "unpack it first (unzstd)" },
    { 0, 3, "BZh", "a bzip2 file", "unpack it first (bunzip2)" },
    { 0, 6,
      "\xfd"
      "7zXZ\0",
      "an xz file", "unpack it first (unxz)" },
    { 0, 4, "PK\x03\x04", "a zip file", "unpack it first (unzip)" },
};

/* A safetensors file: the length of its JSON header, then the header. */
static int is_safetensors(const unsigned char *p, size_t n, int64_t size)
{
    uint64_t header;

    if (n < 10 || p[8] != '{')
        return 0;
    memcpy(&header, p, sizeof header);
    return header <= 100000000 && (int64_t)header <= size - 8;
}

/* UTF-8 without control characters other than white space; the last character may be cut. */
static int is_text(const unsigned char *p, size_t n)
{
    struct utf8_check u = { 0 };

    for (size_t i = 0; i < n; i++)
        if (p[i] < 32 && (p[i] == 0 || !strchr("\t\n\r\f\v\b\x1b", p[i])))
            return 0;
    return n > 0 && utf8_check_add(&u, p, n) == 0;
}

struct foreign foreign_look(const void *head, size_t n, int64_t size)
{
    const unsigned char *p = head;

    if (size == 0)
        return (struct foreign){ .what = "empty", .cure = "make it again" };
    if (is_text(p, n))
        return (struct foreign){ .what = "text",
                                 .is_text = 1,
                                 .cure = "make a token file of it with `pretrain-data tokenize`" };
    for (int i = 0; i < COUNT_OF(magics); i++) {
        const struct magic *m = &magics[i];

        if (n >= m->at + m->n && memcmp(p + m->at, m->bytes, m->n) == 0)
            return (struct foreign){ .what = m->what, .cure = m->cure };
    }
    if (is_safetensors(p, n, size))
        return (struct foreign){ .what = "a safetensors file (weights, not tokens)",
                                 .cure = "&data wants a token file, &model init_from the model" };
    return (struct foreign){ .what = "binary data",
                             .is_raw = 1,
                             .cure =
                                 "if it is a raw stream of tokens (nanoGPT; .bin or .ds without "
                                 "its index), say of which type (data_dtype, or --dtype), or use "
                                 "`pretrain-data import`" };
}
