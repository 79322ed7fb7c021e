/* Skeletons: places, attributes, what is refused, and a full disk that must not end the process. */
#include "store/h5.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/tap.h"

static char dir[64] = "/tmp/pretrain-h5.XXXXXX";
static struct err err;

static const char *path_of(const char *name)
{
    static char path[4][128];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static int holds(enum status st)
{
    if (st != OK)
        printf("# status %d: %s\n", (int)st, err.text);
    err.text[0] = '\0';
    return st == OK;
}

static int fails(enum status st, const char *text)
{
    int good = st == E_FILE && strstr(err.text, text);

    if (!good)
        printf("# status %d: %s\n", (int)st, err.text);
    err.text[0] = '\0';
    return good;
}

/* ---- every type, many shapes ---- */

static int64_t count_of(int nd, const int64_t *shape)
{
    int64_t n = 1;

    for (int d = 0; d < nd; d++)
        n *= shape[d];
    return n;
}

static const struct {
    const char *name;
    int nd;
    int64_t shape[BOX_MAX];
} sets[] = {
    { "/scalar", 0, { 0 } },
    { "/weights/model.layers.0.self_attn.q_proj.weight", 2, { 300, 7 } },
    { "/weights/model.norm.weight", 1, { 3 } },
    { "/exp_avg/deep/er", 4, { 2, 3, 4, 5000 } },
    { "/empty", 2, { 0, 9 } },
};

static int sets_make(struct h5 *h, int64_t offset[COUNT_OF(sets)][DTYPE_N])
{
    char name[128];
    int good = 1;

    for (int i = 0; i < COUNT_OF(sets); i++)
        for (int t = 0; t < DTYPE_N; t++) {
            snprintf(name, sizeof name, "%s.%s", sets[i].name, dtype_name((enum dtype)t));
            good &= holds(
                h5_dataset(h, name, (enum dtype)t, sets[i].nd, sets[i].shape, &offset[i][t], &err));
        }
    return good;
}

/* All data of a file apart from each other and inside. */
static int places_are_apart(int64_t offset[COUNT_OF(sets)][DTYPE_N], int64_t file_bytes)
{
    const int64_t n = COUNT_OF(sets) * DTYPE_N;

    for (int64_t a = 0; a < n; a++) {
        int64_t from = offset[a / DTYPE_N][a % DTYPE_N];
        int64_t size = count_of(sets[a / DTYPE_N].nd, sets[a / DTYPE_N].shape) *
                       (int64_t)dtype_size((enum dtype)(a % DTYPE_N));

        if (from < 0 || from + size > file_bytes || (size >= 4096 && from % 4096))
            return 0;
        for (int64_t b = 0; b < n && size; b++) {
            int64_t other = offset[b / DTYPE_N][b % DTYPE_N];

            if (a != b && other > from && other < from + size)
                return 0;
        }
    }
    return 1;
}

static void test_datasets(void)
{
    int64_t offset[COUNT_OF(sets)][DTYPE_N], shape[BOX_MAX], at;
    struct stat s;
    struct h5 *h;
    char name[128];
    enum dtype type;
    int nd, good = 1;

    tap_ok(holds(h5_create(&h, path_of("a.h5"), 4096, 0, &err)) && sets_make(h, offset) &&
               holds(h5_close(h, &err)),
           "datasets of every type");
    stat(path_of("a.h5"), &s);
    tap_ok(places_are_apart(offset, (int64_t)s.st_size), "apart, inside, large ones aligned");
    holds(h5_open(&h, path_of("a.h5"), &err));
    for (int i = 0; i < COUNT_OF(sets); i++)
        for (int t = 0; t < DTYPE_N; t++) {
            snprintf(name, sizeof name, "%s.%s", sets[i].name, dtype_name((enum dtype)t));
            good &= h5_has(h, name) && holds(h5_find(h, name, &type, &nd, shape, &at, &err)) &&
                    (int)type == t && nd == sets[i].nd && at == offset[i][t] &&
                    !memcmp(shape, sets[i].shape, (size_t)nd * sizeof *shape);
        }
    tap_ok(good, "found again with type, shape and place");
    tap_ok(!h5_has(h, "/weights/none") && !h5_has(h, "/none/at/all") && h5_has(h, "/weights"),
           "what is there and what is not");
    tap_ok(fails(h5_find(h, "/none", &type, &nd, shape, &at, &err), "/none"), "an absent dataset");
    h5_close(h, NULL);
}

/* ---- attributes ---- */

static void test_attributes(void)
{
    const int64_t three[] = { 1, -2, INT64_MAX }, one = 7;
    int64_t back[3] = { 0 }, shape = 4, at;
    char text[64], long_text[70000];
    struct h5 *h;
    int good;

    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    good = holds(h5_create(&h, path_of("b.h5"), 4096, 0, &err)) &&
           holds(h5_dataset(h, "/g/set", F32, 1, &shape, &at, &err)) &&
           holds(h5_set_text(h, "/", "name", "first", &err)) &&
           holds(h5_set_text(h, "/", "name", "second \xc3\xa4", &err)) &&
           holds(h5_set_text(h, "/", "empty", "", &err)) &&
           holds(h5_set_text(h, "/", "long", long_text, &err)) &&
           holds(h5_set_i64(h, "/g/set", "three", three, 3, &err)) &&
           holds(h5_set_i64(h, "/g/set", "one", &one, 1, &err)) &&
           holds(h5_set_f64(h, "/", "real", 0.1, &err)) && holds(h5_close(h, &err));
    tap_ok(good, "attributes written, one twice, one of 70,000 bytes");
    holds(h5_open(&h, path_of("b.h5"), &err));
    tap_ok(holds(h5_get_text(h, "/", "name", text, sizeof text, &err)) &&
               !strcmp(text, "second \xc3\xa4") &&
               holds(h5_get_text(h, "/", "empty", text, sizeof text, &err)) && !text[0],
           "texts");
    tap_ok(holds(h5_get_i64(h, "/g/set", "three", back, 3, &err)) &&
               !memcmp(back, three, sizeof three) &&
               holds(h5_get_i64(h, "/g/set", "one", back, 1, &err)) && back[0] == 7,
           "integers");
    tap_ok(fails(h5_get_text(h, "/", "long", text, sizeof text, &err), "not a text shorter"),
           "too long");
    tap_ok(fails(h5_get_text(h, "/", "real", text, sizeof text, &err), "not a text"), "not a text");
    tap_ok(fails(h5_get_i64(h, "/", "real", back, 1, &err), "not 1 integer"), "not an integer");
    tap_ok(fails(h5_get_i64(h, "/g/set", "three", back, 2, &err), "not 2 integers"),
           "another number");
    tap_ok(fails(h5_get_i64(h, "/", "none", back, 1, &err), "no attribute none"),
           "no such attribute");
    tap_ok(fails(h5_get_i64(h, "/no", "one", back, 1, &err), "no object /no"), "no such object");
    h5_close(h, NULL);
}

/* ---- refusals and a full disk ---- */

static void test_open(void)
{
    struct h5 *h;

    file_write_whole(path_of("text"), "just text", 9, &err);
    tap_ok(fails(h5_open(&h, path_of("text"), &err), "text") && !h, "not HDF5");
    tap_ok(fails(h5_open(&h, path_of("absent"), &err), "absent"), "absent");
    tap_ok(fails(h5_create(&h, path_of("no/such/file"), 4096, 0, &err), "no/such/file"),
           "no folder");
}

/* Fails at each of many sizes, and the next file in the same process is good. */
static void test_full(void)
{
    int64_t offset[COUNT_OF(sets)][DTYPE_N];
    struct rlimit old, limit;
    struct h5 *h;
    char name[32];
    int refused = 0, other = 0;

    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 40; i++) {
        enum status st;

        limit = (struct rlimit){ (rlim_t)i * 1000, old.rlim_max };
        setrlimit(RLIMIT_FSIZE, &limit);
        snprintf(name, sizeof name, "full-%d.h5", i);
        st = h5_create(&h, path_of(name), 4096, 0, &err);
        if (st == OK) {
            err.text[0] = '\0';
            for (int s = 0; s < COUNT_OF(sets) && st == OK; s++)
                st = h5_dataset(h, sets[s].name, F32, sets[s].nd, sets[s].shape, &offset[s][0],
                                &err);
            if (h5_close(h, &err) != OK)
                st = E_FILE;
        }
        refused += st == E_FILE && strstr(err.text, name);
        other += st != E_FILE;
        err.text[0] = '\0';
        file_remove(path_of(name), NULL);
    }
    setrlimit(RLIMIT_FSIZE, &old);
    tap_ok(refused == 40 && other == 0, "no room: %d of 40 refused", refused);
    tap_ok(holds(h5_create(&h, path_of("after.h5"), 4096, 0, &err)) && sets_make(h, offset) &&
               holds(h5_close(h, &err)) && holds(h5_open(&h, path_of("after.h5"), &err)) &&
               holds(h5_close(h, &err)),
           "the next file is good");
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    tap_plan(19);
    test_datasets();
    test_attributes();
    test_open();
    test_full();
    file_remove_tree(dir, NULL);
    return tap_done();
}
