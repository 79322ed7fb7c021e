/* Communication of device memory against the host's on the same values.
 * usage: comm staged|nccl [planted MISTAKE]
 * Sums over NCCL may run in another order: at two ranks nothing may differ, at more 1e-6 of the
 * sum of magnitudes (2-byte floats: their own rounding). All else is compared bit by bit. */
#include "parallel/comm.h"
#include "comm.h"

#include "base/arena.h"
#include "base/rng.h"
#include "cuda/queue.h"
#include "schedule/schedule.h"

#include "../parallel/ranks.h"

static struct comm *world;

/* A chunk of the staged backend is 4 MiB. */
static const int64_t sizes[] = { 0, 1, 7, 1000, 65537, 1100003 };
static const enum dtype types[] = { F32, BF16, F16, F64, I32, I64 };

/* in and out of one transfer: on the host, and on the device with the same values */
struct scene {
    char *in, *out, *got;
    dptr din, dout;
    size_t in_bytes, out_bytes;
};

static void scene_open(struct scene *s, enum dtype t, int64_t in, int64_t out, int rank)
{
    s->in_bytes = (size_t)in * dtype_size(t);
    s->out_bytes = (size_t)out * dtype_size(t);
    s->in = mem_take(s->in_bytes + 1);
    s->out = mem_take(s->out_bytes + 1);
    s->got = mem_take(s->out_bytes + 1);
    s->din = device_take(s->in_bytes);
    s->dout = device_take(s->out_bytes);
    fill(s->in, t, in, 7 + (uint64_t)rank);
    fill(s->out, t, out, 100 + (uint64_t)rank);
    upload(s->din, s->in, s->in_bytes);
    upload(s->dout, s->out, s->out_bytes);
}

static int scene_close(struct scene *s, enum dtype t, int ranks)
{
    int ok;

    download(s->got, s->dout, s->out_bytes);
    ok = same(s->got, s->out, t, (int64_t)(s->out_bytes / dtype_size(t)), ranks);
    download(s->got, s->din, min_i64((int64_t)s->in_bytes, (int64_t)s->out_bytes));
    ok &= memcmp(s->got, s->in, (size_t)min_i64((int64_t)s->in_bytes, (int64_t)s->out_bytes)) == 0;
    device_give(s->din);
    device_give(s->dout);
    mem_give(s->in);
    mem_give(s->out);
    mem_give(s->got);
    return ok;
}

/* ---- each transfer alone ---- */

static int64_t total(const int64_t *counts, int n)
{
    int64_t s = 0;

    for (int i = 0; i < n; i++)
        s += counts[i];
    return s;
}

enum { SHAPES = 4 };
static void set_counts(int64_t *counts, int size, int64_t n, int shape)
{
    for (int r = 0; r < size; r++)
        counts[r] = shape == 0   ? n / size + 1             /* equal            */
                    : shape == 1 ? n / size + (r < 2)       /* nearly           */
                    : shape == 2 ? (r % 2 ? 0 : n / size)   /* every second: 0  */
                                 : (r == size - 1 ? n : 0); /* all on the last */
}

static int all_reduce_holds(struct comm *c, struct comm *host, int64_t n, enum dtype t,
                            enum comm_op op)
{
    struct request r = { 0 };
    struct scene s;

    scene_open(&s, t, n, n, c->rank);
    comm_all_reduce(host, NULL, at(s.out), n, t, op, &r);
    comm_wait(NULL, &r);
    comm_all_reduce(c, q, s.dout, n, t, op, &r);
    comm_wait(q, &r);
    return scene_close(&s, t, c->size);
}

static int reduce_scatter_holds(struct comm *c, struct comm *host, int64_t n, int shape,
                                enum dtype t, int in_place)
{
    int64_t *counts = mem_take((size_t)c->size * sizeof *counts), first, all;
    struct request r = { 0 };
    struct scene s;
    int ok;

    set_counts(counts, c->size, n, shape);
    first = total(counts, c->rank) * (int64_t)dtype_size(t);
    all = total(counts, c->size);
    scene_open(&s, t, all, in_place ? all : counts[c->rank], c->rank);
    if (in_place) {
        comm_reduce_scatter(host, NULL, at(s.out), at(s.out + first), counts, t, &r);
        comm_wait(NULL, &r);
        comm_reduce_scatter(c, q, s.dout, dptr_at(s.dout, first), counts, t, &r);
    } else {
        comm_reduce_scatter(host, NULL, at(s.in), at(s.out), counts, t, &r);
        comm_wait(NULL, &r);
        comm_reduce_scatter(c, q, s.din, s.dout, counts, t, &r);
    }
    counts[0] = -1; /* only read by the start */
    comm_wait(q, &r);
    ok = scene_close(&s, t, c->size);
    mem_give(counts);
    return ok;
}

static int all_gather_holds(struct comm *c, struct comm *host, int64_t n, int shape, enum dtype t,
                            int in_place)
{
    int64_t *counts = mem_take((size_t)c->size * sizeof *counts), first, all;
    struct request r = { 0 };
    struct scene s;
    int ok;

    set_counts(counts, c->size, n, shape);
    first = total(counts, c->rank) * (int64_t)dtype_size(t);
    all = total(counts, c->size);
    scene_open(&s, t, counts[c->rank], all, c->rank);
    comm_all_gather(host, NULL, in_place ? at(s.out + first) : at(s.in), at(s.out), counts, t, &r);
    comm_wait(NULL, &r);
    comm_all_gather(c, q, in_place ? dptr_at(s.dout, first) : s.din, s.dout, counts, t, &r);
    counts[0] = -1;
    comm_wait_host(q, &r);
    ok = scene_close(&s, t, 0);
    mem_give(counts);
    return ok;
}

/* From a to b: (a + 2 b) % 3 * n elements. */
static int all_to_all_holds(struct comm *c, struct comm *host, int64_t n, enum dtype t)
{
    int64_t *send = mem_take(2 * (size_t)c->size * sizeof *send), *recv = send + c->size;
    struct request r = { 0 };
    struct scene s;
    int ok;

    for (int k = 0; k < c->size; k++) {
        send[k] = (c->rank + 2 * k) % 3 * n;
        recv[k] = (k + 2 * c->rank) % 3 * n;
    }
    scene_open(&s, t, total(send, c->size), total(recv, c->size), c->rank);
    comm_all_to_all(host, NULL, at(s.in), send, at(s.out), recv, t, &r);
    comm_wait(NULL, &r);
    comm_all_to_all(c, q, s.din, send, s.dout, recv, t, &r);
    comm_wait(q, &r);
    ok = scene_close(&s, t, 0);
    mem_give(send);
    return ok;
}

static int broadcast_holds(struct comm *c, struct comm *host, int64_t n, enum dtype t, int root)
{
    struct request r = { 0 };
    struct scene s;

    scene_open(&s, t, n, n, c->rank);
    comm_broadcast(host, NULL, at(s.out), n, t, root, &r);
    comm_wait(NULL, &r);
    comm_broadcast(c, q, s.dout, n, t, root, &r);
    comm_wait(q, &r);
    return scene_close(&s, t, 0);
}

static void test_type(struct comm *c, struct comm *host, enum dtype t)
{
    int sum = 1, max = 1, scatter = 1, gather = 1, exchange = 1, cast = 1;

    for (int i = 0; i < COUNT_OF(sizes); i++) {
        int64_t n = sizes[i];
        int large = n > 100000;
        if (large && t != F32 && t != BF16)
            continue;
        sum &= all_reduce_holds(c, host, n, t, COMM_SUM);
        max &= all_reduce_holds(c, host, n, t, COMM_MAX);
        for (int shape = large; shape < SHAPES; shape += 1 + large) {
            scatter &= reduce_scatter_holds(c, host, n, shape, t, (i + shape) % 2);
            gather &= all_gather_holds(c, host, n, shape, t, (i + shape + 1) % 2);
        }
        cast &= broadcast_holds(c, host, n, t, i % c->size);
        if (!large || t == F32)
            exchange &= all_to_all_holds(c, host, n, t);
    }
    ranks_ok(sum, "all_reduce sum %s", dtype_name(t));
    ranks_ok(max, "all_reduce max %s", dtype_name(t));
    ranks_ok(scatter, "reduce_scatter %s, counts also 0", dtype_name(t));
    ranks_ok(gather, "all_gather %s, counts also 0", dtype_name(t));
    ranks_ok(exchange, "all_to_all %s, counts also 0", dtype_name(t));
    ranks_ok(cast, "broadcast %s", dtype_name(t));
}

/* ---- several at a time ---- */

static void test_flights(void)
{
    struct comm *host[3] = { world, comm_mpi_split(world, world->rank / 2, world->rank, "row"),
                             comm_mpi_split(world, world->rank % 2, world->rank, "column") };
    struct comm *on[3];
    int64_t before;
    int ok, requests[2];

    for (int i = 0; i < 3; i++)
        on[i] = device_comm_create(host[i], i == 0 ? 2 : 0);
    ok = flights_hold(on, host, 0);
    for (int round = 0; round < 2; round++) {
        before = mem_requests();
        ok &= flights_hold(on, host, round + 1);
        requests[round] = (int)(mem_requests() - before);
    }
    ranks_ok(ok, "%d transfers in flight, waited for in any order", FLIGHTS + 2);
    ranks_ok(requests[0] == 2 && requests[1] == 2, "transfers ask for no memory");
    for (int i = 2; i >= 0; i--)
        device_comm_destroy(on[i]);
    comm_mpi_free(host[2]);
    comm_mpi_free(host[1]);
}

static void test_pipeline(void)
{
    int pp = world->size > 2 && world->size % 2 == 0 ? world->size / 2 : world->size,
        width = world->size / pp;
    struct comm *host[2] = { comm_mpi_split(world, world->rank % width, world->rank, "pp"),
                             comm_mpi_split(world, world->rank / width, world->rank, "tp") };
    struct comm *on[3] = { device_comm_create(host[0], 2), device_comm_create(host[1], 0),
                           device_comm_create(host[1], 0) };

    for (int i = 0; schedule_names[i]; i++)
        ranks_ok(pipeline_holds(on[0], on[1], on[2], schedule_names[i]),
                 "a pipeline of %d stages: %s", pp, schedule_names[i]);
    for (int i = 2; i >= 0; i--)
        device_comm_destroy(on[i]);
    comm_mpi_free(host[1]);
    comm_mpi_free(host[0]);
}

/* ---- mistakes ---- */

/* Without the wait the queue sees the old values where streams are lazy. */
static void test_missing_wait(struct comm *c)
{
    const char *streams = getenv("CUEMU_STREAMS");
    struct request r = { 0 };
    float x = 1, y = 0;
    dptr d = device_take(sizeof x);

    upload(d, &x, sizeof x);
    comm_all_reduce(c, q, d, 1, F32, COMM_SUM, &r);
    download(&y, d, sizeof y);
    ranks_ok(!streams || strcmp(streams, "lazy") != 0 || y == 1, "a missing wait shows");
    comm_wait(q, &r);
    download(&y, d, sizeof y);
    ranks_ok(y == (float)c->size, "and a wait helps");
    device_give(d);
}

/* The emulation must notice each. */
static void plant(struct comm *c, const char *mistake)
{
    struct request r = { 0 };
    dptr d = device_take(1000);
    char here[1000];

    if (strcmp(mistake, "count") == 0)
        comm_all_reduce(c, q, d, 10 + c->rank, F32, COMM_SUM, &r);
    else if (strcmp(mistake, "order") == 0 && c->rank == 0)
        comm_all_reduce(c, q, d, 10, F32, COMM_SUM, &r);
    else if (strcmp(mistake, "order") == 0)
        comm_broadcast(c, q, d, 40, U8, 0, &r);
    else if (strcmp(mistake, "memory") == 0)
        comm_all_reduce(c, q, at(here), 10, F32, COMM_SUM, &r);
    else if (strcmp(mistake, "receive") == 0)
        comm_recv(c, q, d, 10, F32, (c->rank + 1) % c->size, 0, &r);
    comm_wait_host(q, &r);
    die(E_BUG, "nobody noticed: %s", mistake);
}

static void open_queue(void)
{
    int devices;

    cuda_check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    q->device = world->rank % devices;
    cuda_check(cudaSetDevice(q->device), "cudaSetDevice");
    cuda_check(cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking), "cudaStreamCreate");
}

int main(int argc, char **argv)
{
    struct comm *c;

    world = comm_mpi_start(&argc, &argv);
    BUG_IF(argc < 2);
    over_nccl = strcmp(argv[1], "nccl") == 0;
    open_queue();
    c = device_comm_create(world, 2);
    if (argc > 2)
        plant(c, argv[2]);
    ranks_plan(world, 6 * COUNT_OF(types) + (world->size > 1 ? 9 : 2));
    test_missing_wait(c);
    for (int i = 0; i < COUNT_OF(types); i++)
        test_type(c, world, types[i]);
    if (c->size > 1)
        ranks_ok(messages_hold(c), "messages of a tag arrive in order, those of two together");
    device_comm_destroy(c);
    if (world->size > 1) {
        test_flights();
        test_pipeline();
    }
    cuda_check(cudaStreamDestroy(q->stream), "cudaStreamDestroy");
    comm_mpi_end(world);
    return tap_done();
}
