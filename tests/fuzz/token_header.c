/* libFuzzer: HDF5 files whose header is not that of a token file. The input says what each dataset
 * and attribute is: there or not, its type, rank, size, layout and value. Whatever comes of it,
 * opening the file, reading samples and checking all must end with OK or E_FILE, and the message
 * names the file. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "data/sampler.h"
#include "data/tokens_file.h"

enum { N = 40 };

static char path[] = "/tmp/pretrain-fuzz.XXXXXX";
static const uint8_t *input;
static size_t left;

static int take(void) /* a byte of the input; 0 behind its end: what is good */
{
    return left ? (left--, *input++) : 0;
}

static int64_t take_number(int64_t good)
{
    int64_t v = 0;

    switch (take() % 8) {
    case 1:
        return take();
    case 2:
        return -take();
    case 3:
        return good + take() - 128;
    case 4:
        return INT64_MAX - take();
    case 5:
        for (int i = 0; i < 8; i++)
            v = (int64_t)((uint64_t)v << 8 | (uint64_t)take());
        return v;
    default:
        return good;
    }
}

static hid_t take_type(hid_t good)
{
    const hid_t types[] = { good,          good,           H5T_STD_U8LE,  H5T_STD_U16LE,
                            H5T_STD_U32LE, H5T_STD_I32LE,  H5T_STD_I64LE, H5T_STD_U64LE,
                            H5T_STD_U16BE, H5T_IEEE_F32LE, H5T_C_S1,      H5T_STD_REF_OBJ };

    return types[take() % COUNT_OF(types)];
}

static hid_t take_space(hsize_t n)
{
    hsize_t shape[3] = { n, 1, 1 }, most[3] = { H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED };
    int how = take() % 8;

    if (how == 1)
        return H5Screate(H5S_SCALAR);
    if (how == 2)
        return H5Screate(H5S_NULL);
    if (how == 3)
        shape[0] = (hsize_t)(take_number((int64_t)n) & 0x3ff);
    return H5Screate_simple(how == 4 ? 2 : how == 5 ? 3 : 1, shape, how == 6 ? most : NULL);
}

static void put_dataset(hid_t f, const char *name, hid_t good, hsize_t n, const void *data)
{
    static const H5D_layout_t layouts[] = { H5D_CONTIGUOUS, H5D_CONTIGUOUS, H5D_CHUNKED,
                                            H5D_COMPACT };
    hsize_t chunk[3] = { 8, 8, 8 };
    hid_t p, type, space, d;

    if (take() % 16 == 1)
        return;
    if (take() % 32 == 1) {
        H5Gclose(H5Gcreate2(f, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        return;
    }
    type = take_type(good);
    space = take_space(n);
    p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(p, layouts[take() % COUNT_OF(layouts)]);
    if (H5Pget_layout(p) == H5D_CHUNKED)
        H5Pset_chunk(p, H5Sget_simple_extent_ndims(space), chunk);
    H5Pset_alloc_time(p, take() % 8 == 1 ? H5D_ALLOC_TIME_LATE : H5D_ALLOC_TIME_EARLY);
    d = H5Dcreate2(f, name, type, space, H5P_DEFAULT, p, H5P_DEFAULT);
    if (d >= 0 && type == good && H5Sget_simple_extent_npoints(space) <= (hssize_t)n)
        H5Dwrite(d, good, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    if (d >= 0)
        H5Dclose(d);
    H5Pclose(p);
    H5Sclose(space);
}

static void put_number(hid_t f, const char *name, int64_t good)
{
    int64_t v[1024] = { 0 };
    hid_t type, space, a;

    if (take() % 16 == 1)
        return;
    type = take_type(H5T_STD_I64LE);
    space = take() % 8 == 1 ? take_space(1) : H5Screate(H5S_SCALAR);
    v[0] = take_number(good);
    a = H5Acreate2(f, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (a >= 0)
        H5Awrite(a, H5T_NATIVE_INT64, v);
    if (a >= 0)
        H5Aclose(a);
    H5Sclose(space);
}

static void put_text(hid_t f, const char *name, const char *good)
{
    char text[512] = "";
    const char *s = text;
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), a;
    int how = take() % 16;
    size_t n = strlen(good);

    memcpy(text, good, n);
    if (how == 1)
        n = (size_t)take() * 2;
    for (size_t i = strlen(good); i < n; i++)
        text[i] = 'x';
    if (how == 2)
        text[take() % sizeof text] = (char)take();
    H5Tset_size(type, how == 3 ? H5T_VARIABLE : n + (how != 4) + (n + (how != 4) == 0));
    if (how == 5)
        H5Tset_strpad(type, H5T_STR_SPACEPAD);
    H5Tset_cset(type, take() % 2 ? H5T_CSET_ASCII : H5T_CSET_UTF8);
    if (how != 6 && (a = H5Acreate2(f, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0) {
        if (how != 7)
            H5Awrite(a, type, how == 3 ? (const void *)&s : text);
        H5Aclose(a);
    }
    H5Sclose(space);
    H5Tclose(type);
}

static void make_file(void)
{
    hid_t p = H5Pcreate(H5P_FILE_ACCESS), f;
    uint16_t ids[N];
    int64_t starts[] = { 0, 5, 5, 17 };
    const char *json = "{}";

    for (int i = 0; i < N; i++)
        ids[i] = (uint16_t)(i * 5 % 300);
    for (int i = 0; i < COUNT_OF(starts); i++)
        starts[i] = take_number(starts[i]);
    H5Pset_libver_bounds(p, take() % 2 ? H5F_LIBVER_V18 : H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
    f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, p);
    put_dataset(f, "tokens", H5T_STD_U16LE, N, ids);
    put_dataset(f, "documents", H5T_STD_I64LE, COUNT_OF(starts), starts);
    put_dataset(f, "tokenizer_json", H5T_STD_U8LE, 2, json);
    put_text(f, "format", TOKENS_FORMAT);
    put_text(f, "tokens_xxh3", "0123456789abcdef0123456789abcdef");
    put_number(f, "format_version", TOKENS_VERSION);
    put_number(f, "vocab_size", 300);
    put_number(f, "end_of_document", 7);
    put_number(f, "ntokens", N);
    put_number(f, "ndocuments", COUNT_OF(starts));
    H5Fclose(f);
    H5Pclose(p);
    if (take() % 4 == 1 && truncate(path, (off_t)(take() * 40)) != 0)
        die(E_FILE, "cannot cut %s", path);
}

static void check_fault(enum status st, const struct err *e)
{
    if (st != OK && (st != E_FILE || !strstr(e->text, path)))
        die(E_BUG, "status %d, or no file is named: %s", (int)st, e->text);
}

static void read_file(void)
{
    int32_t rows[5][8];
    struct batch_rows b = { rows[0], rows[1], rows[2], rows[3], rows[4] };
    const char *name = path;
    struct err e = { "" };
    struct corpus c;
    int64_t largest;
    enum status st = corpus_open(&c, &name, 1, 8, NULL, &e);

    check_fault(st, &e);
    if (st != OK)
        return;
    corpus_limit(&c, 300, 1, &e);
    for (int64_t k = 0; k < c.samples && k < 8; k++)
        check_fault(batch_fill(&c, &b, 0, k, 1, 1, &e), &e);
    for (int64_t at = 0; at < c.count && c.file[0].ndocuments; at += 7)
        tokens_document_start(&c.file[0], at);
    check_fault(tokens_check(&c.file[0], &largest, &e), &e);
    corpus_close(&c);
}

static void clean(void)
{
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static int begun;

    if (!begun) {
        begun = 1;
        if (mkstemp(path) < 0)
            die(E_FILE, "cannot make %s", path);
        atexit(clean);
        log_speaker(0);
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    }
    input = p;
    left = n;
    make_file();
    read_file();
    return 0;
}
