#include "store/h5.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "store/h5_file.h"

/* H5Pset_file_locking came with 1.10.7 and 1.12.1. */
#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
#define HAVE_FILE_LOCKING 1
#endif

/* Datasets of this size and more are aligned; metadata grows in blocks of half of it, which stay
 * packed. */
enum { THRESHOLD_MAX = 65536 };

const char *h5_version(void)
{
    static char text[32];
    unsigned major = 0, minor = 0, release = 0;

    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "HDF5 %u.%u.%u", major, minor, release);
    return text;
}

/* ---- errors ---- */

struct reason {
    char text[512];
};

/* Called from the deepest entry of HDF5's error stack upwards: keep the first. Of a failed system
 * call its message, not HDF5's paragraph about it. */
static herr_t reason_take(unsigned n, const H5E_error2_t *entry, void *arg)
{
    static const char mark[] = "error message = '";
    struct reason *r = arg;
    const char *from = entry->desc ? strstr(entry->desc, mark) : NULL;

    (void)n;
    if (r->text[0] || !entry->desc)
        return 0;
    snprintf(r->text, sizeof r->text, "%s", from ? from + sizeof mark - 1 : entry->desc);
    r->text[strcspn(r->text, from ? "'\n" : "\n")] = '\0';
    return 0;
}

enum status h5_fail(const struct h5 *f, struct err *e, const char *doing, const char *name)
{
    struct reason r = { "" };

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, reason_take, &r);
    H5Eclear2(H5E_DEFAULT);
    return err_set(e, E_FILE, "%s: HDF5 cannot %s%s%s: %s", f->path, doing, name ? " " : "",
                   name ? name : "", r.text[0] ? r.text : "no reason given");
}

/* ---- types ---- */

/* A 16-bit float: sign, then exponent bits, then mantissa bits. */
static hid_t type_half(size_t exponent, size_t mantissa, size_t bias)
{
    hid_t t = H5Tcopy(H5T_IEEE_F32LE);

    H5Tset_fields(t, 15, mantissa, exponent, 0, mantissa);
    H5Tset_precision(t, 16);
    H5Tset_size(t, 2);
    H5Tset_ebias(t, bias);
    return t;
}

/* The caller closes it. */
static hid_t type_open(enum dtype t)
{
    switch (t) {
    case F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case BF16:
        return type_half(8, 7, 127);
    case F16:
        return type_half(5, 10, 15);
    case I32:
        return H5Tcopy(H5T_STD_I32LE);
    case I64:
        return H5Tcopy(H5T_STD_I64LE);
    case U8:
        return H5Tcopy(H5T_STD_U8LE);
    case U16:
        return H5Tcopy(H5T_STD_U16LE);
    case U32:
        return H5Tcopy(H5T_STD_U32LE);
    default:
        return H5I_INVALID_HID;
    }
}

static int type_find(hid_t stored)
{
    for (int t = 0; t < DTYPE_N; t++) {
        hid_t ours = type_open((enum dtype)t);
        int same = H5Tequal(ours, stored) > 0;

        H5Tclose(ours);
        if (same)
            return t;
    }
    return -1;
}

/* ---- files ---- */

/* Nothing at exit (a failed flush would crash there), no printing; both may be repeated. */
static void library_open(void)
{
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Eclear2(H5E_DEFAULT);
}

/* Locks fail on many parallel file systems. We need none: a file is written under a name that only
 * its writer knows. */
static hid_t access_open(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
#ifdef HAVE_FILE_LOCKING
    H5Pset_file_locking(fapl, 0, 1);
#endif
    return fapl;
}

/* No times: the same content makes the same file. */
static hid_t creation_open(hid_t class_id)
{
    hid_t list = H5Pcreate(class_id);

    H5Pset_obj_track_times(list, 0);
    return list;
}

static struct h5 *h5_new(const char *path)
{
    struct h5 *f = mem_take(sizeof *f);

    library_open();
    f->file = H5I_INVALID_HID;
    snprintf(f->path, sizeof f->path, "%s", path);
    return f;
}

/* The common end of create and open; closes fapl. */
static enum status h5_opened(struct h5 *f, hid_t fapl, struct h5 **out, const char *doing,
                             struct err *e)
{
    enum status st = f->file < 0 ? h5_fail(f, e, doing, NULL) : OK;

    H5Pclose(fapl);
    if (st != OK)
        mem_give(f);
    *out = st == OK ? f : NULL;
    return st;
}

enum status h5_create(struct h5 **out, const char *path, int64_t alignment, int for_index,
                      struct err *e)
{
    struct h5 *f = h5_new(path);
    hid_t fapl = access_open(), fcpl;
    H5F_libver_t version = for_index ? H5F_LIBVER_V110 : H5F_LIBVER_V18;
    int64_t threshold = min_i64(alignment, THRESHOLD_MAX);

    H5Pset_libver_bounds(fapl, version, version);
    if (alignment > 1) {
        H5Pset_alignment(fapl, (hsize_t)threshold, (hsize_t)alignment);
        H5Pset_meta_block_size(fapl, (hsize_t)(threshold / 2));
        H5Pset_small_data_block_size(fapl, (hsize_t)min_i64(threshold / 2, 2048));
    }
    fcpl = creation_open(H5P_FILE_CREATE);
    f->file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
    H5Pclose(fcpl);
    return h5_opened(f, fapl, out, "create the file", e);
}

enum status h5_open(struct h5 **out, const char *path, struct err *e)
{
    struct h5 *f = h5_new(path);
    hid_t fapl = access_open();

    f->file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    return h5_opened(f, fapl, out, "open the file", e);
}

enum status h5_close(struct h5 *f, struct err *e)
{
    enum status st = OK;

    if (!f)
        return OK;
    if (H5Fclose(f->file) < 0)
        st = h5_fail(f, e, "finish the file", NULL);
    mem_give(f);
    return st;
}

/* ---- datasets ---- */

hid_t h5_space(int nd, const int64_t *shape)
{
    hsize_t dims[BOX_MAX];

    if (nd == 0)
        return H5Screate(H5S_SCALAR);
    for (int d = 0; d < nd; d++)
        dims[d] = (hsize_t)shape[d];
    return H5Screate_simple(nd, dims, NULL);
}

/* Makes the groups on the way to name. */
static void groups_make(struct h5 *f, const char *name)
{
    hid_t gcpl = creation_open(H5P_GROUP_CREATE);
    char part[1024];

    BUG_IF(strlen(name) >= sizeof part);
    strcpy(part, name);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (H5Lexists(f->file, part, H5P_DEFAULT) == 0) {
            hid_t group = H5Gcreate2(f->file, part, H5P_DEFAULT, gcpl, H5P_DEFAULT);

            if (group >= 0) /* else the dataset fails and says why */
                H5Gclose(group);
        }
        *slash = '/';
    }
    H5Pclose(gcpl);
}

static hid_t dataset_create(struct h5 *f, const char *name, enum dtype t, int nd,
                            const int64_t *shape, hid_t dcpl)
{
    hid_t type = type_open(t), space = h5_space(nd, shape), set;

    groups_make(f, name);
    set = H5Dcreate2(f->file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Sclose(space);
    H5Tclose(type);
    return set;
}

enum status h5_dataset(struct h5 *f, const char *name, enum dtype t, int nd, const int64_t *shape,
                       int64_t *offset, struct err *e)
{
    hid_t dcpl = creation_open(H5P_DATASET_CREATE), set;
    haddr_t at;
    int64_t count = 1;

    BUG_IF(nd < 0 || nd > BOX_MAX);
    for (int d = 0; d < nd; d++)
        count *= shape[d];
    H5Pset_layout(dcpl, H5D_CONTIGUOUS);
    H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
    set = dataset_create(f, name, t, nd, shape, dcpl);
    H5Pclose(dcpl);
    if (set < 0)
        return h5_fail(f, e, "create dataset", name);
    at = count ? H5Dget_offset(set) : 0; /* an empty dataset has no place */
    H5Dclose(set);
    if (at == HADDR_UNDEF)
        return h5_fail(f, e, "place dataset", name);
    *offset = (int64_t)at;
    return OK;
}

/* What a reader sees where a part's file is missing: NaN, or 0 for integers. Given in the stored
 * type: HDF5 converts nothing. */
static void fill_set(hid_t dcpl, enum dtype t)
{
    static const uint64_t nan_bits[DTYPE_N] = {
        [F32] = 0x7fc00000, [F64] = 0x7ff8000000000000, [BF16] = 0x7fc0, [F16] = 0x7e00
    };
    hid_t type = type_open(t);

    H5Pset_fill_value(dcpl, type, &nan_bits[t]);
    H5Tclose(type);
}

static int part_add(hid_t dcpl, hid_t whole, const struct h5_part *p)
{
    hsize_t off[BOX_MAX], ext[BOX_MAX];
    int nd = p->where.nd, bad;
    hid_t source;

    if (box_count(&p->where) == 0)
        return 0;
    for (int d = 0; d < nd; d++) {
        off[d] = (hsize_t)p->where.off[d];
        ext[d] = (hsize_t)p->where.ext[d];
    }
    source = H5Screate_simple(nd, ext, NULL);
    bad = source < 0 || H5Sselect_hyperslab(whole, H5S_SELECT_SET, off, NULL, ext, NULL) < 0 ||
          H5Pset_virtual(dcpl, whole, p->file, p->dataset, source) < 0;
    H5Sclose(source);
    return bad;
}

enum status h5_virtual(struct h5 *f, const char *name, enum dtype t, int nd, const int64_t *shape,
                       const struct h5_part *parts, int nparts, struct err *e)
{
    hid_t dcpl = creation_open(H5P_DATASET_CREATE), whole, set = H5I_INVALID_HID;
    int bad = 0;

    BUG_IF(nd < 1 || nd > BOX_MAX);
    whole = h5_space(nd, shape);
    fill_set(dcpl, t);
    for (int i = 0; i < nparts && !bad; i++)
        bad = part_add(dcpl, whole, &parts[i]);
    if (!bad)
        set = dataset_create(f, name, t, nd, shape, dcpl);
    H5Sclose(whole);
    H5Pclose(dcpl);
    if (set < 0)
        return h5_fail(f, e, "create virtual dataset", name);
    H5Dclose(set);
    return OK;
}

int h5_has(struct h5 *f, const char *name)
{
    char part[1024];

    if (snprintf(part, sizeof part, "%s", name) >= (int)sizeof part)
        return 0;
    for (char *s = part[0] == '/' ? part + 1 : part;
         s;) { /* every group on the way must be there */
        char *slash = strchr(s, '/');

        if (slash)
            *slash = '\0';
        if (H5Lexists(f->file, part, H5P_DEFAULT) <= 0)
            return 0;
        if (slash)
            *slash = '/';
        s = slash ? slash + 1 : NULL;
    }
    return 1;
}

/* Shape, type and place of an open dataset. Returns what is wrong with it, or NULL. */
static const char *dataset_describe(hid_t set, enum dtype *t, int *nd, int64_t shape[BOX_MAX],
                                    int64_t *offset)
{
    hid_t type = H5Dget_type(set), space = H5Dget_space(set), dcpl = H5Dget_create_plist(set);
    int found = type_find(type), n = H5Sget_simple_extent_ndims(space);
    hsize_t dims[H5S_MAX_RANK] = { 0 };
    const char *wrong = NULL;
    haddr_t at = H5Dget_offset(set);
    int empty = H5Sget_simple_extent_npoints(space) == 0;

    if (found < 0)
        wrong = "its element type is none of ours (little-endian integers and floats)";
    else if (H5Pget_layout(dcpl) != H5D_CONTIGUOUS || H5Pget_nfilters(dcpl) > 0 ||
             H5Pget_external_count(dcpl) > 0)
        wrong = "it is chunked, compressed or stored elsewhere; only contiguous data can be read";
    else if (n < 0 || n > BOX_MAX || H5Sget_simple_extent_type(space) == H5S_NULL)
        wrong = "it has too many dimensions, or no data";
    else if (at == HADDR_UNDEF && !empty)
        wrong = "its data was never written";
    else {
        H5Sget_simple_extent_dims(space, dims, NULL);
        for (int d = 0; d < n; d++)
            shape[d] = (int64_t)dims[d];
        *t = (enum dtype)found;
        *nd = n;
        *offset = empty ? 0 : (int64_t)at;
    }
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Tclose(type);
    return wrong;
}

enum status h5_find(struct h5 *f, const char *name, enum dtype *t, int *nd, int64_t shape[BOX_MAX],
                    int64_t *offset, struct err *e)
{
    const char *wrong;
    hid_t set;

    if (!h5_has(f, name))
        return err_set(e, E_FILE, "%s: there is no dataset %s", f->path, name);
    set = H5Dopen2(f->file, name, H5P_DEFAULT);
    if (set < 0)
        return h5_fail(f, e, "open dataset", name);
    wrong = dataset_describe(set, t, nd, shape, offset);
    H5Dclose(set);
    H5Eclear2(H5E_DEFAULT);
    if (wrong)
        return err_set(e, E_FILE, "%s: dataset %s: %s", f->path, name, wrong);
    return OK;
}
