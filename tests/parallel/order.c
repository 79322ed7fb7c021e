/* The measured order of transfers is the list's. Every rank runs its list with a real pipeline
 * communicator, but the compute actions only check what has arrived. MPI's own entry points are
 * watched: which receives and sends were posted, in which order. */
#include <mpi.h>
#include <string.h>

#include "base/arena.h"
#include "parallel/comm_mpi_impl.h"
#include "schedule/schedule.h"

#include "ranks.h"

enum { WORDS = 6, TAG_F = 0, TAG_B = 1 };

/* ---- what MPI saw ---- */

struct seen {
    int sending, peer, tag;
};
static struct seen *seen;
static int nseen, watching;

int MPI_Irecv(void *buf, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r)
{
    if (watching)
        seen[nseen++] = (struct seen){ 0, from, tag };
    return PMPI_Irecv(buf, n, t, from, tag, c, r);
}

int MPI_Isend(const void *buf, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r)
{
    if (watching)
        seen[nseen++] = (struct seen){ 1, to, tag };
    return PMPI_Isend(buf, n, t, to, tag, c, r);
}

/* ---- one rank of a pipeline without a model ---- */

struct slot {
    int32_t word[WORDS];
    struct request in, out;
};

struct rank {
    struct comm *pp;
    const struct schedule *s;
    struct slot *act, *grad;
    int wrong;
};

static int stage_of(const struct rank *k, const struct action *a)
{
    return k->s->stage_of[k->pp->rank * k->s->chunks + a->chunk];
}

static void write_words(struct slot *s, int direction, int stage, int mb)
{
    for (int i = 0; i < WORDS; i++)
        s->word[i] = (direction * 64 + stage) * 4096 + mb * 8 + i;
}

/* What lies in s came from `stage` for this micro-batch. */
static void expect_words(struct rank *k, const struct slot *s, int direction, int stage, int mb)
{
    struct slot want;

    write_words(&want, direction, stage, mb);
    k->wrong += memcmp(want.word, s->word, sizeof s->word) != 0;
}

static void forward(struct rank *k, const struct action *a)
{
    struct slot *s = &k->act[a->slot];

    comm_wait(NULL, &s->in);
    comm_wait(NULL, &s->out);
    if (!a->first)
        expect_words(k, s, TAG_F, stage_of(k, a) - 1, a->mb);
    write_words(s, TAG_F, stage_of(k, a), a->mb);
    if (a->last && a->grad >= 0) {
        comm_wait(NULL, &k->grad[a->grad].out);
        write_words(&k->grad[a->grad], TAG_B, stage_of(k, a) + 1, a->mb);
    }
}

static void backward(struct rank *k, const struct action *a)
{
    struct slot *g = &k->grad[a->grad];

    comm_wait(NULL, &g->in);
    expect_words(k, g, TAG_B, stage_of(k, a) + 1, a->mb);
    write_words(g, TAG_B, stage_of(k, a), a->mb);
}

static void transfer(struct rank *k, const struct action *a)
{
    int back = a->kind == ACT_SEND_B || a->kind == ACT_RECV_B;
    struct slot *s = back ? &k->grad[a->grad] : &k->act[a->slot];
    dptr p = { (char *)s->word };

    if (a->kind == ACT_SEND_F || a->kind == ACT_SEND_B) {
        comm_send(k->pp, NULL, p, WORDS, I32, a->peer, back ? TAG_B : TAG_F, &s->out);
        return;
    }
    comm_wait(NULL, &s->out);
    comm_recv(k->pp, NULL, p, WORDS, I32, a->peer, back ? TAG_B : TAG_F, &s->in);
}

static void move(struct rank *k, const struct action *a)
{
    int back = a->kind == ACT_MOVE_B;
    struct slot *from = back ? &k->grad[a->grad] : &k->act[a->slot];
    struct slot *to = back ? &k->grad[a->to_grad] : &k->act[a->to_slot];

    comm_wait(NULL, &to->out);
    memcpy(to->word, from->word, sizeof to->word);
}

static void nothing(struct rank *k, const struct action *a)
{
    (void)k;
    (void)a;
}

static void (*const table[ACT_KINDS])(struct rank *, const struct action *) = {
    [ACT_F] = forward,       [ACT_B] = backward,      [ACT_I] = backward,
    [ACT_W] = nothing,       [ACT_SEND_F] = transfer, [ACT_RECV_F] = transfer,
    [ACT_SEND_B] = transfer, [ACT_RECV_B] = transfer, [ACT_MOVE_F] = move,
    [ACT_MOVE_B] = move,     [ACT_REDUCE] = nothing,
};

static int is_transfer(const struct action *a)
{
    return a->kind >= ACT_SEND_F && a->kind <= ACT_RECV_B;
}

/* Receives that MPI saw, against the list's; the same for sends. A backend may post a send and a
 * receive in another order relative to each other, never two of a kind. */
static int order_differs(const struct schedule *s, int rank, int sending)
{
    int at = 0;

    for (int i = 0; i < s->n[rank]; i++) {
        const struct action *a = &s->list[rank][i];
        int sends = a->kind == ACT_SEND_F || a->kind == ACT_SEND_B;
        int direction = a->kind == ACT_SEND_B || a->kind == ACT_RECV_B ? TAG_B : TAG_F;
        if (!is_transfer(a) || sends != sending)
            continue;
        while (at < nseen && seen[at].sending != sending)
            at++;
        if (at == nseen || seen[at].peer != a->peer || seen[at].tag % TAGS_EACH != direction)
            return 1;
        at++;
    }
    while (at < nseen && seen[at].sending != sending)
        at++;
    return at != nseen;
}

static void run(struct comm *pp, const char *name, int chunks, int mbs)
{
    struct schedule s;
    struct err e = { "" };
    struct rank k = { .pp = pp, .s = &s };
    int r = pp->rank;

    if (schedule_build(&s, name, pp->size, chunks, mbs, &e) != OK) {
        ranks_ok(0, "%s: %s", name, e.text);
        return;
    }
    k.act = mem_take(sizeof *k.act * (size_t)(s.slots[r] + 1));
    k.grad = mem_take(sizeof *k.grad * (size_t)(s.grads[r] + 1));
    seen = mem_take(sizeof *seen * (size_t)(s.n[r] + 1));
    nseen = 0;
    watching = 1;
    for (int i = 0; i < s.n[r]; i++)
        table[s.list[r][i].kind](&k, &s.list[r][i]);
    for (int i = 0; i < s.slots[r]; i++)
        comm_wait(NULL, &k.act[i].out);
    for (int i = 0; i < s.grads[r]; i++)
        comm_wait(NULL, &k.grad[i].out);
    watching = 0;
    ranks_ok(k.wrong == 0, "%s, %d chunks, %d micro-batches: each message is the one expected",
             name, chunks, mbs);
    ranks_ok(!order_differs(&s, r, 0), "%s, %d chunks, %d micro-batches: receives posted as listed",
             name, chunks, mbs);
    ranks_ok(!order_differs(&s, r, 1), "%s, %d chunks, %d micro-batches: sends posted as listed",
             name, chunks, mbs);
    mem_give(seen);
    mem_give(k.act);
    mem_give(k.grad);
    schedule_free(&s);
}

int main(int argc, char **argv)
{
    struct comm *world = comm_mpi_start(&argc, &argv), *pp;
    const struct {
        const char *name;
        int chunks, mbs;
    } cases[] = {
        { "gpipe", 1, 8 }, { "1f1b", 1, 1 },   { "1f1b", 1, 7 },        { "1f1b", 1, 24 },
        { "zb-h1", 1, 3 }, { "zb-h1", 1, 24 }, { "interleaved", 2, 0 }, { "interleaved", 4, 0 },
    };

    ranks_plan(world, 3 * COUNT_OF(cases));
    pp = comm_mpi_split(world, 0, world->rank, "pp");
    for (int i = 0; i < COUNT_OF(cases); i++)
        run(pp, cases[i].name, cases[i].chunks, cases[i].mbs ? cases[i].mbs : 3 * pp->size);
    comm_mpi_free(pp);
    comm_mpi_end(world);
    return tap_failed > 0;
}
