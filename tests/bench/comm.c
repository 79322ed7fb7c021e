/* Speed of the communication seam: mpirun -np N bench/comm. Medians; "GB/s" is bytes of the buffer
 * per second. */
#include "base/arena.h"
#include "base/clock.h"
#include "parallel/comm_mpi.h"
#include "parallel/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 11 };

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *x)
{
    qsort(x, ROUNDS, sizeof *x, ascending);
    return x[ROUNDS / 2];
}

/* Seconds of one all-reduce. */
static double all_reduce_time(struct comm *c, dptr buf, int64_t bytes)
{
    int repeats = (int)max_i64(1, min_i64(200, (8 << 20) / max_i64(bytes, 1024)));
    double t[ROUNDS];
    struct request r = { 0 };

    for (int k = 0; k < ROUNDS; k++) {
        comm_barrier(c);
        t[k] = clock_now();
        for (int i = 0; i < repeats; i++) {
            comm_all_reduce(c, NULL, buf, bytes / 4, F32, COMM_SUM, &r);
            comm_wait(NULL, &r);
        }
        t[k] = (clock_now() - t[k]) / repeats;
    }
    return median(t);
}

/* Seconds for a message from the first rank to the last and one back, halved. */
static double message_time(struct comm *c, dptr buf, int64_t bytes)
{
    int repeats = (int)max_i64(1, min_i64(200, (8 << 20) / max_i64(bytes, 1024))),
        last = c->size - 1;
    double t[ROUNDS];
    struct request r = { 0 };

    for (int k = 0; k < ROUNDS; k++) {
        comm_barrier(c);
        t[k] = clock_now();
        for (int i = 0; i < repeats; i++)
            for (int turn = 0; turn < 2; turn++) {
                if (c->rank == (turn ? last : 0))
                    comm_send(c, NULL, buf, bytes, U8, turn ? 0 : last, 0, &r);
                else if (c->rank == (turn ? 0 : last))
                    comm_recv(c, NULL, buf, bytes, U8, turn ? last : 0, 0, &r);
                comm_wait(NULL, &r);
            }
        t[k] = (clock_now() - t[k]) / repeats / 2;
    }
    return median(t);
}

static double barrier_time(struct comm *c)
{
    double t[ROUNDS];

    for (int k = 0; k < ROUNDS; k++) {
        comm_barrier(c);
        t[k] = clock_now();
        for (int i = 0; i < 100; i++)
            comm_barrier(c);
        t[k] = (clock_now() - t[k]) / 100;
    }
    return median(t);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = { 8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20 };
    double began = clock_now(), started;
    struct comm *world = comm_mpi_start(&argc, &argv);
    struct err e = { "" };
    struct grid g;
    struct arena a;
    dptr buf;

    if (grid_create(&g, world, 1, 1, world->size, 1, 1, &e) != OK)
        die(E_BUG, "%s", e.text);
    started = clock_now() - began;
    grid_pin_threads(&g, 1);
    arena_measure(&a, "bench", NULL);
    arena_take(&a, 64 << 20);
    if (arena_open(&a, &e) != OK)
        die(E_RESOURCE, "%s", e.text);
    buf = arena_take(&a, 64 << 20);
    memset(buf.p, 0, 64 << 20);
    if (world->rank == 0)
        printf("%s, %d ranks, %d cores; start %.0f ms\n", comm_mpi_version(), world->size, g.cores,
               started * 1e3);
    began = barrier_time(world);
    if (world->rank == 0)
        printf("barrier %.1f us\n%12s %28s %28s\n", began * 1e6, "bytes", "all-reduce", "message");
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        double s = all_reduce_time(world, buf, sizes[i]);
        double m = world->size > 1 ? message_time(world, buf, sizes[i]) : 0;
        if (world->rank == 0)
            printf("%12lld %10.1f us %8.2f GB/s %10.1f us %8.2f GB/s\n", (long long)sizes[i],
                   s * 1e6, s > 0 ? (double)sizes[i] / s / 1e9 : 0, m * 1e6,
                   m > 0 ? (double)sizes[i] / m / 1e9 : 0);
    }
    arena_close(&a);
    grid_free(&g);
    comm_mpi_end(world);
    return 0;
}
