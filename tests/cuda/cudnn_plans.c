/* cudnn_plans FOLDER: cuDNN has plans for our attention on the devices described in FOLDER, and
 * what it cannot do is refused in words. Needs no GPU, only a libcuda.so.1 (stand_in_driver.c). */
#include "cuda/cudnn_attention.h"
#include "cuda/cudnn_plan.h"
#include "tests/tap.h"

#include <math.h>
#include <time.h>

struct trial {
    const char *device;
    int B, H, G, K, S;
    enum dtype t;
    int deterministic;
    const char *refusal; /* NULL: plans must be built */
};

/* Llama's shapes on the machines that we know of. */
static const struct trial trials[] = {
    { "h200", 4, 16, 16, 128, 2048, BF16, 0, NULL },
    { "h200", 4, 16, 16, 128, 2048, BF16, 1, NULL },
    { "h200", 2, 32, 8, 128, 4096, BF16, 0, NULL },
    { "h200", 2, 32, 8, 128, 4096, BF16, 1, NULL },
    { "h200", 8, 12, 12, 64, 2048, F16, 0, NULL },
    { "h200", 4, 16, 4, 64, 4096, F16, 1, NULL },
    { "h200", 2, 8, 2, 64, 1000, BF16, 0, NULL },
    { "h200", 1, 8, 1, 128, 16384, BF16, 1, NULL },
    { "h200", 2, 8, 8, 256, 2048, BF16, 1, NULL },
    { "h100", 2, 32, 8, 128, 4096, BF16, 1, NULL },
    { "b200", 2, 32, 8, 128, 4096, BF16, 0, NULL },
    { "b200", 2, 32, 8, 128, 4096, BF16, 1, "known to repeat on sm_90 only, not on sm_100" },
    { "b200", 2, 8, 8, 256, 2048, BF16, 0, "takes heads of up to 128, not 256" },
    { "a100", 2, 32, 8, 128, 4096, BF16, 0, "not on sm_80" },
    { "h200", 2, 8, 8, 512, 2048, BF16, 0, "takes heads of up to 256, not 512" },
    { "h200", 2, 8, 8, 36, 2048, BF16, 0, "a multiple of 8, not 36" },
    { "h200", 2, 8, 8, 64, 2048, F32, 0, "for bfloat16 and float16, not float32" },
    { "h200", 1, 8, 1, 128, 32768, BF16, 1, "MiB of scratch" },
};

static struct attention_shape shape_of(const struct trial *t)
{
    int64_t ld = (int64_t)(t->H + 2 * t->G) * t->K;

    return (struct attention_shape){ .B = t->B,
                                     .Tq = t->S,
                                     .Tk = t->S,
                                     .H = t->H,
                                     .G = t->G,
                                     .K = t->K,
                                     .ldq = ld,
                                     .ldkv = ld,
                                     .ldo = (int64_t)t->H * t->K,
                                     .scale = 1 / sqrt(t->K) };
}

static struct cudnn_device *open_device(const char *folder, const char *name)
{
    char path[1024], json[4096];
    struct err e = { "" };
    struct cudnn_device *d;
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    f = fopen(path, "r");
    if (!f) {
        printf("Bail out! cannot read %s\n", path);
        exit(1);
    }
    n = fread(json, 1, sizeof json - 1, f);
    json[n] = 0;
    fclose(f);
    d = cudnn_device_open(json, &e);
    if (!d)
        printf("# %s: %s\n", path, e.text);
    return d;
}

static double seconds(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void try(const struct trial *t, const struct cudnn_device *d)
{
    struct attention_shape s = shape_of(t);
    struct err e = { "" };
    char name[256], text[256];
    double start = seconds();
    struct cudnn_attention *a =
        d ? cudnn_attention_create(d, &s, t->t, t->deterministic, &e) : NULL;

    snprintf(name, sizeof name, "%s: B %d, %d/%d heads of %d, %d tokens, %s%s", t->device, t->B,
             t->H, t->G, t->K, t->S, dtype_name(t->t), t->deterministic ? ", deterministic" : "");
    if (t->refusal) {
        if (!tap_ok(!a && strstr(e.text, t->refusal), "%s: refused", name))
            printf("# %s\n", a ? "it was not" : e.text);
    } else if (tap_ok(a != NULL, "%s", name)) {
        cudnn_attention_describe(a, text, sizeof text);
        printf("# %s; %.2f s\n", text, seconds() - start);
    } else {
        printf("# %s\n", e.text);
    }
    cudnn_attention_free(a);
}

/* What the trials cannot say. */
static void try_odd_shapes(const struct cudnn_device *d)
{
    struct attention_shape s = shape_of(&trials[0]), ring = s, rows = s;
    struct err e = { "" }, f = { "" };

    ring.Tk = 2 * ring.Tq;
    rows.ldkv += 4;
    tap_ok(!cudnn_attention_create(d, &ring, BF16, 0, &e) && strstr(e.text, "as many queries"),
           "other keys than queries: refused");
    tap_ok(!cudnn_attention_create(d, &rows, BF16, 0, &f) && strstr(f.text, "multiple of 8 elem"),
           "rows that are not aligned: refused");
}

int main(int argc, char **argv)
{
    struct cudnn_device *d = NULL;

    tap_plan(COUNT_OF(trials) + 2);
    if (argc != 2)
        return 2;
    printf("# cuDNN %zu\n", cudnnGetVersion());
    for (int i = 0; i < COUNT_OF(trials); i++) {
        if (i == 0 || strcmp(trials[i].device, trials[i - 1].device)) {
            cudnn_device_close(d);
            d = open_device(argv[1], trials[i].device);
        }
        try(&trials[i], d);
    }
    try_odd_shapes(d);
    cudnn_device_close(d);
    return tap_done();
}
