#include "compute/choose.h"

#include "compute/cpu.h"

#include <stdio.h>
#include <string.h>

typedef void slot(void);
enum { SLOTS = (sizeof(struct ops) - offsetof(struct ops, queue_create)) / sizeof(slot *) };

#ifdef HAVE_CUDA
static const struct ops *const cuda = &ops_cuda;
#else
static const struct ops *const cuda = NULL;
#endif
static struct ops filled; /* ops_cpu with its holes filled */
static char description[128] = "none chosen";

/* Copy into `to` the slots of `from` that are NULL there. */
static void fill_holes(struct ops *to, const struct ops *from)
{
    slot *mine[SLOTS], *theirs[SLOTS];
    memcpy(mine, &to->queue_create, sizeof mine);
    memcpy(theirs, &from->queue_create, sizeof theirs);
    for (int i = 0; i < SLOTS; i++) {
        mine[i] = mine[i] ? mine[i] : theirs[i];
    }
    memcpy(&to->queue_create, mine, sizeof mine);
}

static enum status choose_reference(const struct ops **ops, enum dtype t)
{
    *ops = &ops_ref;
    snprintf(description, sizeof description, "plain loops in double (%s)", dtype_name(t));
    return OK;
}

static enum status choose_cpu(const struct ops **ops, const char *isa, struct err *e)
{
    enum status st = cpu_choose(isa, e);
    if (st != OK) {
        return st;
    }
    filled = ops_cpu;
    fill_holes(&filled, &ops_ref);
    *ops = &filled;
    cpu_describe(description, sizeof description);
    return OK;
}

static enum status choose_cuda(const struct ops **ops, enum dtype t, struct err *e)
{
    if (!cuda) {
        return err_set(e, E_RESOURCE,
                       "this build has no CUDA backend: set device = 'cpu' or 'auto', or configure "
                       "the program with --with-cuda");
    }
    if (t == F64) {
        return err_set(e, E_INPUT,
                       "the CUDA backend has no float64: set the device to 'cpu', or the dtype to "
                       "'float32', 'bfloat16' or 'float16'");
    }
    *ops = cuda;
    snprintf(description, sizeof description, "CUDA (%s)", dtype_name(t));
    return OK;
}

enum status ops_choose(const struct ops **ops, const char *backend, const char *isa, enum dtype t,
                       struct err *e)
{
    int is_auto = !strcmp(backend, "auto"), is_cpu = !strcmp(backend, "cpu");
    if (!strcmp(backend, "cuda")) {
        return choose_cuda(ops, t, e);
    }
    if (t != F32 && t != F64 && t != BF16 && t != F16) {
        return err_set(e, E_INPUT, "dtype %s: compute takes float32, float64, bfloat16 and float16",
                       dtype_name(t));
    }
    if (!strcmp(backend, "reference") || (is_auto && t == F64)) {
        return choose_reference(ops, t);
    }
    if (is_cpu && t == F64) {
        return err_set(e, E_INPUT,
                       "%s runs on the reference backend only: set the backend to 'reference' or "
                       "'auto', or the dtype to 'float32'",
                       dtype_name(t));
    }
    if (is_cpu || is_auto) {
        return choose_cpu(ops, isa, e);
    }
    return err_set(e, E_INPUT,
                   "unknown compute backend '%s': choose 'auto', 'cpu', 'reference' or 'cuda'",
                   backend);
}

const struct ops *ops_device(void)
{
    return cuda;
}

const char *ops_describe(void)
{
    return description;
}
