#include "store/h5.h"

#include <string.h>

#include "store/h5_file.h"

/* Replaces an older value. Closes type and space. */
static enum status attribute_write(struct h5 *f, const char *object, const char *attribute,
                                   hid_t type, hid_t space, hid_t memory, const void *value,
                                   struct err *e)
{
    hid_t a = H5I_INVALID_HID;
    int bad = 0;

    if (H5Aexists_by_name(f->file, object, attribute, H5P_DEFAULT) > 0)
        bad = H5Adelete_by_name(f->file, object, attribute, H5P_DEFAULT) < 0;
    if (!bad)
        a = H5Acreate_by_name(f->file, object, attribute, type, space, H5P_DEFAULT, H5P_DEFAULT,
                              H5P_DEFAULT);
    bad = a < 0 || H5Awrite(a, memory, value) < 0;
    if (a >= 0)
        H5Aclose(a);
    H5Sclose(space);
    H5Tclose(type);
    return bad ? h5_fail(f, e, "write attribute", attribute) : OK;
}

static hid_t type_text(size_t bytes)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, bytes);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

enum status h5_set_text(struct h5 *f, const char *object, const char *attribute, const char *value,
                        struct err *e)
{
    hid_t type = type_text(strlen(value) + 1), memory = H5Tcopy(type);
    enum status st =
        attribute_write(f, object, attribute, type, H5Screate(H5S_SCALAR), memory, value, e);

    H5Tclose(memory);
    return st;
}

enum status h5_set_i64(struct h5 *f, const char *object, const char *attribute, const int64_t *v,
                       int n, struct err *e)
{
    int64_t shape = n;
    hid_t space = n == 1 ? H5Screate(H5S_SCALAR) : h5_space(1, &shape);

    return attribute_write(f, object, attribute, H5Tcopy(H5T_STD_I64LE), space, H5T_NATIVE_INT64, v,
                           e);
}

enum status h5_set_f64(struct h5 *f, const char *object, const char *attribute, double v,
                       struct err *e)
{
    return attribute_write(f, object, attribute, H5Tcopy(H5T_IEEE_F64LE), H5Screate(H5S_SCALAR),
                           H5T_NATIVE_DOUBLE, &v, e);
}

static enum status attribute_open(struct h5 *f, const char *object, const char *attribute, hid_t *a,
                                  struct err *e)
{
    if (strcmp(object, "/") && !h5_has(f, object))
        return err_set(e, E_FILE, "%s: there is no object %s", f->path, object);
    if (H5Aexists_by_name(f->file, object, attribute, H5P_DEFAULT) <= 0) {
        H5Eclear2(H5E_DEFAULT);
        return err_set(e, E_FILE, "%s: %s has no attribute %s", f->path, object, attribute);
    }
    *a = H5Aopen_by_name(f->file, object, attribute, H5P_DEFAULT, H5P_DEFAULT);
    return *a < 0 ? h5_fail(f, e, "open attribute", attribute) : OK;
}

/* Fixed and variable length both. */
static int text_read(hid_t a, hid_t type, char *value, size_t max)
{
    size_t size = H5Tget_size(type);
    hid_t memory;
    int bad;

    if (H5Tis_variable_str(type) > 0) {
        hid_t space = H5Aget_space(a);
        char *s = NULL;

        memory = H5Tcopy(type);
        bad = H5Aread(a, memory, &s) < 0 || !s || strlen(s) >= max;
        if (!bad)
            memcpy(value, s, strlen(s) + 1);
        H5Dvlen_reclaim(memory, space, H5P_DEFAULT, &s);
        H5Sclose(space);
    } else {
        memory = type_text(max);
        H5Tset_cset(memory,
                    H5Tget_cset(type)); /* HDF5 converts between lengths, not between encodings */
        bad = size > max || H5Aread(a, memory, value) < 0;
        value[max - 1] = '\0';
    }
    H5Tclose(memory);
    return bad;
}

enum status h5_get_text(struct h5 *f, const char *object, const char *attribute, char *value,
                        size_t max, struct err *e)
{
    hid_t a, type, space;
    enum status st = attribute_open(f, object, attribute, &a, e);
    int bad;

    if (st != OK)
        return st;
    type = H5Aget_type(a);
    space = H5Aget_space(a);
    bad = H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1 ||
          text_read(a, type, value, max);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(a);
    H5Eclear2(H5E_DEFAULT);
    if (bad)
        return err_set(e, E_FILE, "%s: attribute %s of %s is not a text shorter than %zu bytes",
                       f->path, attribute, object, max);
    return OK;
}

enum status h5_get_i64(struct h5 *f, const char *object, const char *attribute, int64_t *v, int n,
                       struct err *e)
{
    hid_t a, type, space;
    enum status st = attribute_open(f, object, attribute, &a, e);
    int bad;

    if (st != OK)
        return st;
    type = H5Aget_type(a);
    space = H5Aget_space(a);
    bad = H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != n ||
          H5Aread(a, H5T_NATIVE_INT64, v) < 0;
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(a);
    H5Eclear2(H5E_DEFAULT);
    if (bad)
        return err_set(e, E_FILE, "%s: attribute %s of %s is not %d integer%s", f->path, attribute,
                       object, n, n == 1 ? "" : "s");
    return OK;
}
