/* Every transfer against a plain loop, to the last bit. Sizes straddle the chunks of the MPI
 * backend. */
#include "parallel/comm.h"
#include "base/arena.h"
#include "base/rng.h"
#include "ranks.h"

static struct comm *world;

static const struct {
    enum dtype t;
    const char *name;
} sums[] = {
    { F32, "float32" },
    { F64, "float64" },
    { I32, "int32" },
    { I64, "int64" },
};

static const int64_t sizes[] = { 0, 1, 2, 7, 1000, 4097, 65536, 65537, 300001 };

/* *x = element i of rank r. Floats spread over 40 binary orders: their sum depends on the order. */
static void put(void *x, enum dtype t, int64_t i, int r)
{
    uint64_t h = ((uint64_t)i * 64 + (uint64_t)r + 1) * 0x9e3779b97f4a7c15u;
    double v;

    h ^= h >> 31;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 29;
    v = (double)(int64_t)h / (double)((int64_t)1 << (22 + h % 40));
    switch (t) {
    case F32:
        *(float *)x = (float)v;
        break;
    case F64:
        *(double *)x = v;
        break;
    case I32:
        *(int32_t *)x = (int32_t)(h >> 36) - (1 << 27);
        break;
    case I64:
        *(int64_t *)x = (int64_t)(h >> 8) - ((int64_t)1 << 55);
        break;
    default:
        *(uint8_t *)x = (uint8_t)h;
        break;
    }
}

#define FOLD(type)                                                       \
    do {                                                                 \
        type s = ((const type *)a)[0], v = ((const type *)b)[0];         \
        ((type *)a)[0] = op == COMM_SUM ? (type)(s + v) : s > v ? s : v; \
    } while (0)

static void fold(void *a, const void *b, enum dtype t, enum comm_op op)
{
    switch (t) {
    case F32:
        FOLD(float);
        break;
    case F64:
        FOLD(double);
        break;
    case I32:
        FOLD(int32_t);
        break;
    default:
        FOLD(int64_t);
        break;
    }
}

/* x[0..n-1] = elements first.. of rank r */
static void fill(void *x, enum dtype t, int64_t first, int64_t n, int r)
{
    for (int64_t i = 0; i < n; i++)
        put((char *)x + (size_t)i * dtype_size(t), t, first + i, r);
}

/* Sum or maximum over `size` ranks in order (or backwards) of elements first.. */
static void expect(void *x, enum dtype t, enum comm_op op, int64_t first, int64_t n, int size,
                   int backwards)
{
    size_t e = dtype_size(t);
    char *b = mem_take((size_t)n * e + 1);

    fill(x, t, first, n, backwards ? size - 1 : 0);
    for (int r = 1; r < size; r++) {
        fill(b, t, first, n, backwards ? size - 1 - r : r);
        for (int64_t i = 0; i < n; i++)
            fold((char *)x + (size_t)i * e, b + (size_t)i * e, t, op);
    }
    mem_give(b);
}

static dptr at(void *p)
{
    return (dptr){ p };
}

/* Uneven counts with zeros; total about n. */
static void uneven(int64_t *counts, int size, int64_t n, int shape)
{
    for (int r = 0; r < size; r++)
        counts[r] = shape == 0   ? n / size + (r < n % size)      /* even             */
                    : shape == 1 ? (r % 2 ? 0 : 2 * n / size + r) /* every second: 0  */
                                 : (r == size - 1 ? n : 0);       /* all on the last  */
}

static int64_t total(const int64_t *counts, int n)
{
    int64_t s = 0;

    for (int r = 0; r < n; r++)
        s += counts[r];
    return s;
}

/* ---- one transfer at a time ---- */

static int all_reduce_holds(struct comm *c, int64_t n, enum dtype t, enum comm_op op)
{
    size_t bytes = (size_t)n * dtype_size(t);
    char *x = mem_take(bytes + 1), *y = mem_take(bytes + 1);
    struct request r = { 0 };
    int ok;

    fill(x, t, 0, n, c->rank);
    expect(y, t, op, 0, n, c->size, 0);
    x[bytes] = y[bytes] = 77;
    comm_all_reduce(c, NULL, at(x), n, t, op, &r);
    comm_wait(NULL, &r);
    ok = memcmp(x, y, bytes + 1) == 0 && !r.comm;
    mem_give(x);
    mem_give(y);
    return ok;
}

static int reduce_scatter_holds(struct comm *c, int64_t n, int shape, enum dtype t, int in_place)
{
    int64_t *counts = mem_take((size_t)c->size * sizeof *counts);
    size_t e = dtype_size(t), all, first, mine;
    struct request r = { 0 };
    char *x, *keep, *y, *out;
    int ok;

    uneven(counts, c->size, n, shape);
    all = (size_t)total(counts, c->size) * e;
    first = (size_t)total(counts, c->rank) * e;
    mine = (size_t)counts[c->rank] * e;
    x = mem_take(all + 1);
    keep = mem_take(all + 1);
    y = mem_take(mine + 1);
    out = in_place ? x + first : mem_take(mine + 1);
    fill(x, t, 0, (int64_t)(all / e), c->rank);
    memcpy(keep, x, all);
    expect(y, t, COMM_SUM, (int64_t)(first / e), (int64_t)(mine / e), c->size, 0);
    comm_reduce_scatter(c, NULL, at(x), at(out), counts, t, &r);
    counts[0] = -1; /* the list is only read by the start */
    comm_wait_host(NULL, &r);
    ok = memcmp(out, y, mine) == 0 && memcmp(x, keep, first) == 0 &&
         memcmp(x + first + mine, keep + first + mine, all - first - mine) == 0;
    if (!in_place) {
        ok &= memcmp(x, keep, all) == 0 && out[mine] == 0;
        mem_give(out);
    }
    mem_give(x);
    mem_give(keep);
    mem_give(y);
    mem_give(counts);
    return ok;
}

static int all_gather_holds(struct comm *c, int64_t n, int shape, enum dtype t, int in_place)
{
    int64_t *counts = mem_take((size_t)c->size * sizeof *counts), first = 0;
    size_t e = dtype_size(t), all;
    struct request r = { 0 };
    char *in, *out, *y;
    int ok;

    uneven(counts, c->size, n, shape);
    all = (size_t)total(counts, c->size) * e;
    out = mem_take(all + 1);
    y = mem_take(all + 1);
    in = in_place ? out + (size_t)total(counts, c->rank) * e
                  : mem_take((size_t)counts[c->rank] * e + 1);
    fill(in, t, total(counts, c->rank), counts[c->rank], c->rank);
    for (int k = 0; k < c->size; first += counts[k++])
        fill(y + (size_t)first * e, t, first, counts[k], k);
    comm_all_gather(c, NULL, at(in), at(out), counts, t, &r);
    comm_wait(NULL, &r);
    ok = memcmp(out, y, all + 1) == 0;
    if (!in_place)
        mem_give(in);
    mem_give(out);
    mem_give(y);
    mem_give(counts);
    return ok;
}

/* From a to b: (a + 2 b) % 3 * n elements, the first one numbered 1000 b. */
static int all_to_all_holds(struct comm *c, int64_t n, enum dtype t)
{
    int64_t *send = mem_take(2 * (size_t)c->size * sizeof *send), *recv = send + c->size;
    size_t e = dtype_size(t), room = (size_t)c->size * (size_t)n * 2 * e + 1, used = 0;
    char *in = mem_take(room), *out = mem_take(room), *y = mem_take(room);
    struct request r = { 0 };
    int ok;

    for (int k = 0; k < c->size; k++) {
        send[k] = (c->rank + 2 * k) % 3 * n;
        recv[k] = (k + 2 * c->rank) % 3 * n;
        fill(in + (size_t)total(send, k) * e, t, 1000 * k, send[k], c->rank);
        fill(y + used, t, 1000 * c->rank, recv[k], k);
        used += (size_t)recv[k] * e;
    }
    comm_all_to_all(c, NULL, at(in), send, at(out), recv, t, &r);
    comm_wait(NULL, &r);
    ok = memcmp(out, y, room) == 0;
    mem_give(in);
    mem_give(out);
    mem_give(y);
    mem_give(send);
    return ok;
}

static int broadcast_holds(struct comm *c, int64_t n, int root)
{
    char *x = mem_take((size_t)n + 1), *y = mem_take((size_t)n + 1);
    struct request r = { 0 };
    int ok;

    fill(x, U8, 0, n, c->rank);
    fill(y, U8, 0, n, root);
    comm_broadcast(c, NULL, at(x), n, U8, root, &r);
    comm_wait(NULL, &r);
    ok = memcmp(x, y, (size_t)n + 1) == 0;
    mem_give(x);
    mem_give(y);
    return ok;
}

static void test_collectives(struct comm *c)
{
    for (int k = 0; k < COUNT_OF(sums); k++) {
        enum dtype t = sums[k].t;
        int sum = 1, max = 1, scatter = 1, gather = 1, exchange = 1;
        for (int s = 0; s < COUNT_OF(sizes); s++) {
            sum &= all_reduce_holds(c, sizes[s], t, COMM_SUM);
            max &= all_reduce_holds(c, sizes[s], t, COMM_MAX);
            for (int shape = 0; shape < 3; shape++) {
                scatter &= reduce_scatter_holds(c, sizes[s], shape, t, s % 2);
                gather &= all_gather_holds(c, sizes[s], shape, t, (s + 1) % 2);
            }
            if (sizes[s] < 100000)
                exchange &= all_to_all_holds(c, sizes[s], t);
        }
        ranks_ok(sum, "all_reduce sum %s", sums[k].name);
        ranks_ok(max, "all_reduce max %s", sums[k].name);
        ranks_ok(scatter, "reduce_scatter %s, counts also 0", sums[k].name);
        ranks_ok(gather, "all_gather %s, counts also 0", sums[k].name);
        ranks_ok(exchange, "all_to_all %s, counts also 0", sums[k].name);
    }
}

static void test_broadcast(struct comm *c)
{
    int ok = 1;

    for (int root = 0; root < c->size; root++)
        for (int s = 0; s < COUNT_OF(sizes); s++)
            ok &= broadcast_holds(c, sizes[s], root);
    ranks_ok(ok && broadcast_holds(c, (9 << 20) + 5, c->size - 1), "broadcast from every root");
}

/* The sums above could not tell one order from another if this failed. */
static void test_order_matters(void)
{
    enum { N = 1000 };
    float there[N], back[N];

    expect(there, F32, COMM_SUM, 0, N, world->size, 0);
    expect(back, F32, COMM_SUM, 0, N, world->size, 1);
    ranks_ok(world->size < 3 || memcmp(there, back, sizeof there) != 0,
             "the test's sums depend on the order");
}

/* ---- several transfers in flight ---- */

static void test_point_to_point(void)
{
    enum { LONG = (17 << 20) + 3, SHORT = 1001 };
    int to = (world->rank + 1) % world->size, from = (world->rank + world->size - 1) % world->size,
        ok = 1;
    char *x = mem_take(2 * LONG + SHORT), *y = mem_take(2 * LONG + SHORT),
         *z = mem_take(2 * LONG + SHORT);
    struct request r[8] = { { 0 } };

    if (world->size == 1)
        goto done;
    memset(x, world->rank + 1, 2 * LONG + SHORT);
    memset(z, from + 1, 2 * LONG + SHORT);
    for (int i = 0; i < 2 * LONG; i += 4093) {
        x[i] = (char)(i / 4093 + world->rank);
        z[i] = (char)(i / 4093 + from);
    }
    /* two long messages of one tag and short ones behind them, of the same and of another tag; an
     * empty one */
    comm_group_begin(world, NULL);
    comm_send(world, NULL, at(x), LONG, U8, to, 3, &r[0]);
    comm_send(world, NULL, at(x + LONG), LONG, U8, to, 3, &r[1]);
    comm_send(world, NULL, at(x + 2 * LONG), SHORT - 1, U8, to, 3, &r[2]);
    comm_send(world, NULL, at(x + 2 * LONG + SHORT - 1), 1, U8, to, 4, &r[3]);
    comm_recv(world, NULL, at(y + 2 * LONG + SHORT - 1), 1, U8, from, 4, &r[4]);
    comm_recv(world, NULL, at(y), LONG, U8, from, 3, &r[5]);
    if (world->rank % 2) /* its last piece is received before the next message is asked for */
        comm_wait(NULL, &r[5]);
    comm_recv(world, NULL, at(y + LONG), LONG, U8, from, 3, &r[6]);
    comm_recv(world, NULL, at(y + 2 * LONG), SHORT - 1, U8, from, 3, &r[7]);
    comm_group_end(world, NULL);
    comm_wait_host(NULL, &r[4]);
    ok = y[2 * LONG + SHORT - 1] == from + 1;
    for (int i = 0; i < 8; i++)
        comm_wait(NULL, &r[(i + world->rank) % 8]);
    ok &= memcmp(y, z, 2 * LONG + SHORT) == 0;
    comm_send(world, NULL, at(x), 0, F32, to, 0, &r[0]);
    comm_recv(world, NULL, at(y), 0, F32, from, 0, &r[1]);
    comm_wait(NULL, &r[1]);
    comm_wait(NULL, &r[0]);
    comm_wait(NULL, &r[0]);
done:
    ranks_ok(ok, "messages longer than a piece arrive in the order sent");
    mem_give(x);
    mem_give(y);
    mem_give(z);
}

enum { FLIGHTS = 40, FLIGHT_N = 20011 };

/* Collectives on three communicators and a ring of messages, all started before any is waited for;
 * every rank waits in an order of its own. */
static int flights_hold(struct comm *row, struct comm *column, float *x, int round)
{
    struct comm *on[3] = { world, row, column };
    struct request r[FLIGHTS] = { { 0 } }, s = { 0 }, t = { 0 };
    int to = (world->rank + 1) % world->size, from = (world->rank + world->size - 1) % world->size,
        ok = 1;
    float *got = x + (FLIGHTS + 0) * FLIGHT_N, *y = x + (FLIGHTS + 1) * FLIGHT_N,
          *own = x + (FLIGHTS + 2) * FLIGHT_N;

    fill(own, F32, 0, FLIGHT_N, world->rank);
    for (int k = 0; k < FLIGHTS; k++) {
        struct comm *c = on[k % 3];
        fill(x + k * FLIGHT_N, F32, k, FLIGHT_N, c->rank);
        if (k == 7 && world->size > 1)
            comm_recv(world, NULL, at(got), FLIGHT_N, F32, from, 1, &t);
        comm_all_reduce(c, NULL, at(x + k * FLIGHT_N), FLIGHT_N, F32, COMM_SUM, &r[k]);
    }
    if (world->size > 1)
        comm_send(world, NULL, at(own), FLIGHT_N, F32, to, 1, &s);
    for (int k = 0; k < FLIGHTS; k++) {
        int w = (int)rng_permute((uint64_t)round, (uint64_t)world->rank, FLIGHTS, (uint64_t)k);
        if (k == FLIGHTS / 2)
            comm_wait(NULL, world->rank % 2 ? &t : &s);
        comm_wait_host(NULL, &r[w]);
    }
    comm_wait(NULL, &s);
    comm_wait(NULL, &t);
    for (int k = 0; k < FLIGHTS; k++) {
        expect(y, F32, COMM_SUM, k, FLIGHT_N, on[k % 3]->size, 0);
        ok &= memcmp(y, x + k * FLIGHT_N, FLIGHT_N * sizeof *y) == 0;
    }
    fill(y, F32, 0, FLIGHT_N, from);
    return ok && (world->size == 1 || memcmp(got, y, FLIGHT_N * sizeof *y) == 0);
}

static void test_flights(struct comm *row, struct comm *column)
{
    float *x = mem_take((FLIGHTS + 3) * (size_t)FLIGHT_N * sizeof *x);
    int64_t before, tests;
    int ok = flights_hold(row, column, x, 0);

    before = mem_requests();
    for (int round = 1; round < 4; round++)
        ok &= flights_hold(row, column, x, round);
    tests = 3 * FLIGHTS; /* expect() takes one for each result */
    ranks_ok(ok, "%d transfers in flight, waited for in any order", FLIGHTS + 2);
    ranks_ok(mem_requests() - before == tests, "transfers ask for no memory");
    mem_give(x);
}

/* ---- groups, host helpers ---- */

static void test_groups(struct comm *row)
{
    struct comm *third =
        comm_mpi_split(world, world->rank % 3 == 1 ? -1 : world->rank % 3, -world->rank, "third");
    struct comm *alone = comm_mpi_split(world, world->rank, 0, "alone");
    int ok, members = 0;

    for (int r = 0; r < world->size; r++)
        members += r % 3 == world->rank % 3;
    ok = world->rank % 3 == 1 ? third == NULL : third != NULL && third->size == members;
    if (third)
        ok &= third->rank == members - 1 - world->rank / 3;
    ranks_ok(ok, "split in three, one of them in none, in the order of the keys");
    ranks_ok(!third || all_reduce_holds(third, 5001, F32, COMM_SUM), "all_reduce of a group");
    ranks_ok(alone->size == 1 && all_reduce_holds(alone, 1000, F64, COMM_SUM) &&
                 reduce_scatter_holds(alone, 1000, 0, F32, 0) &&
                 reduce_scatter_holds(alone, 1000, 0, F32, 1) &&
                 all_gather_holds(alone, 1000, 0, I64, 0) &&
                 all_gather_holds(alone, 1000, 0, I64, 1) && all_to_all_holds(alone, 10, I32) &&
                 broadcast_holds(alone, 10, 0),
             "a group of one copies");
    ranks_ok(all_gather_holds(row, 3000, 1, F32, 0), "all_gather of a row");
    comm_mpi_free(third);
    comm_mpi_free(alone);
}

static void test_host(struct comm *c)
{
    int64_t x[2] = { c->rank, (int64_t)1 << 40 }, m[2] = { -c->rank - 5, c->rank }, n = c->size;
    double d[3], y[3];
    char text[40] = "";
    int *all = mem_take((size_t)n * 2 * sizeof *all), mine[2] = { c->rank, -c->rank }, ok = 1;

    fill(d, F64, 0, 3, c->rank);
    expect(y, F64, COMM_SUM, 0, 3, c->size, 0);
    comm_sum_i64(c, x, 2);
    comm_max_i64(c, m, 2);
    comm_sum_f64(c, d, 3);
    ranks_ok(x[0] == n * (n - 1) / 2 && x[1] == n << 40, "sum of int64 on the host");
    ranks_ok(m[0] == -5 && m[1] == n - 1, "maximum of int64 on the host");
    ranks_ok(memcmp(d, y, sizeof d) == 0, "sum of float64 on the host, in rank order");
    if (c->rank == c->size - 1)
        strcpy(text, "from the last");
    comm_bytes_from(c, text, sizeof text, c->size - 1);
    ranks_ok(strcmp(text, "from the last") == 0, "bytes from one rank");
    comm_bytes_all(c, mine, all, sizeof mine);
    for (int r = 0; r < c->size; r++)
        ok &= all[2 * r] == r && all[2 * r + 1] == -r;
    ranks_ok(ok, "bytes of all ranks");
    comm_barrier(c);
    mem_give(all);
}

int main(int argc, char **argv)
{
    struct comm *row, *column;

    world = comm_mpi_start(&argc, &argv);
    ranks_plan(world, 5 * COUNT_OF(sums) + 14);
    row = comm_mpi_split(world, world->rank / 2, world->rank, "row");
    column = comm_mpi_split(world, world->rank % 2, world->rank, "column");
    test_order_matters();
    test_collectives(world);
    test_broadcast(world);
    test_point_to_point();
    test_flights(row, column);
    test_groups(row);
    test_host(world);
    comm_mpi_free(column);
    comm_mpi_end(world); /* frees the row too */
    return tap_done();
}
