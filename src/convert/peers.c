#include "convert/peers.h"

#include "base/arena.h"
#include "base/clock.h"

enum { TAG_HEAD, TAG_TEXT, TAG_RESULT, TAG_DOCUMENTS, TAG_TOKENS };
enum { ENDED = -1 }; /* the number of a batch that is none */

/* Of a batch on its way. Transfers of one tag are started in the order of the batches. */
struct flight {
    struct work *w;
    enum { FREE, HEAD, BODY, HERE, SENT } phase;
    struct request head, text, result, documents, tokens;
};

struct ring { /* flights taken .. given - 1, at i % window */
    struct flight *flight;
    int64_t taken, given;
};

static dptr at(void *p)
{
    return (dptr){ p };
}

static int test(struct request *r)
{
    return comm_test(NULL, r);
}

/* The parts of a result behind its head: documents and tokens, or the message. */
static void move_result(struct comm *c, struct flight *f, int peer,
                        void (*move)(struct comm *, struct queue *, dptr, int64_t, enum dtype, int,
                                     int, struct request *))
{
    struct encoded *r = &f->w->r;
    int64_t documents = r->h.ndocuments * (int64_t)sizeof *r->document;
    int64_t tokens = r->h.ntokens * (int64_t)sizeof(uint32_t);

    if (r->h.status != OK)
        move(c, NULL, at(r->e.text), sizeof r->e.text, U8, peer, TAG_DOCUMENTS, &f->documents);
    else if (documents)
        move(c, NULL, at(r->document), documents, U8, peer, TAG_DOCUMENTS, &f->documents);
    if (r->h.status == OK && tokens)
        move(c, NULL, at(r->tokens), tokens, U8, peer, TAG_TOKENS, &f->tokens);
}

/* ---- rank 0 ---- */

struct peers {
    struct comm *world;
    int window;
    struct ring *ring; /* [world size] */
};

struct peers *peers_open(struct comm *world, int window)
{
    struct peers *p = mem_take(sizeof *p);

    p->world = world;
    p->window = window;
    p->ring = mem_take((size_t)world->size * sizeof *p->ring);
    for (int r = 1; r < world->size; r++)
        p->ring[r].flight = mem_take((size_t)window * sizeof *p->ring[r].flight);
    return p;
}

void peers_put(struct peers *p, int rank, struct work *w)
{
    struct ring *g = &p->ring[rank];
    struct flight *f = &g->flight[g->given % p->window];
    struct batch *b = &w->batch;

    BUG_IF(g->given - g->taken == p->window);
    g->given++;
    f->w = w;
    f->phase = HEAD;
    w->done = 0;
    comm_send(p->world, NULL, at(&b->h), sizeof b->h, U8, rank, TAG_HEAD, &f->head);
    comm_send(p->world, NULL, at(b->text), b->h.n, U8, rank, TAG_TEXT, &f->text);
    comm_recv(p->world, NULL, at(&w->r.h), sizeof w->r.h, U8, rank, TAG_RESULT, &f->result);
}

static int poll_rank(struct peers *p, int rank)
{
    struct ring *g = &p->ring[rank];
    int moved = 0;

    for (int64_t i = g->taken; i < g->given; i++) {
        struct flight *f = &g->flight[i % p->window];

        test(&f->head);
        test(&f->text);
        if (f->phase == HEAD) {
            if (!test(&f->result))
                break;
            encoded_room(&f->w->r);
            move_result(p->world, f, rank, comm_recv);
            f->phase = BODY;
            moved = 1;
        }
        if (f->phase == BODY && test(&f->documents) && test(&f->tokens) && test(&f->head) &&
            test(&f->text)) {
            f->phase = HERE;
            f->w->done = 1;
            moved = 1;
        }
    }
    while (g->taken < g->given && g->flight[g->taken % p->window].phase == HERE)
        g->taken++;
    return moved;
}

int peers_poll(struct peers *p)
{
    int moved = 0;

    for (int r = 1; r < p->world->size; r++)
        moved |= poll_rank(p, r);
    return moved;
}

void peers_close(struct peers *p)
{
    struct batch_head end = { .number = ENDED };
    struct request r = { 0 };

    for (int rank = 1; rank < p->world->size; rank++) {
        comm_send(p->world, NULL, at(&end), sizeof end, U8, rank, TAG_HEAD, &r);
        comm_wait_host(NULL, &r);
        mem_give(p->ring[rank].flight);
    }
    mem_give(p->ring);
    mem_give(p);
}

/* ---- the others ---- */

struct server {
    struct comm *world;
    struct pool *pool;
    int window, ended;
    struct ring g;     /* [window]; the one at `given` waits for its head */
    int64_t put, sent; /* given to the pool; whose results are on their way */
    struct work *work; /* [window] */
    int asked;         /* a head is being received */
};

/* 1: something moved; so with the next three. */
static int take_heads(struct server *s)
{
    int moved = 0;

    while (!s->ended && s->g.given - s->g.taken < s->window) {
        struct flight *f = &s->g.flight[s->g.given % s->window];
        struct batch *b;

        f->w = &s->work[s->g.given % s->window];
        b = &f->w->batch;
        if (!s->asked)
            comm_recv(s->world, NULL, at(&b->h), sizeof b->h, U8, 0, TAG_HEAD, &f->head);
        s->asked = 1;
        if (!test(&f->head))
            break;
        s->asked = 0;
        moved = 1;
        s->ended = b->h.number == ENDED;
        if (s->ended)
            break;
        batch_room(b, (size_t)b->h.n);
        comm_recv(s->world, NULL, at(b->text), b->h.n, U8, 0, TAG_TEXT, &f->text);
        s->g.given++;
    }
    return moved;
}

static int take_texts(struct server *s)
{
    int moved = 0;

    for (; s->put < s->g.given; s->put++, moved = 1) {
        struct flight *f = &s->g.flight[s->put % s->window];

        if (!test(&f->text))
            break;
        pool_put(s->pool, f->w);
    }
    return moved;
}

static int send_results(struct server *s)
{
    int moved = 0;

    for (; s->sent < s->put; s->sent++, moved = 1) {
        struct flight *f = &s->g.flight[s->sent % s->window];

        if (!pool_is_done(s->pool, f->w))
            break;
        comm_send(s->world, NULL, at(&f->w->r.h), sizeof f->w->r.h, U8, 0, TAG_RESULT, &f->result);
        move_result(s->world, f, 0, comm_send);
    }
    return moved;
}

static int finish_sends(struct server *s)
{
    int moved = 0;

    for (; s->g.taken < s->sent; s->g.taken++, moved = 1) {
        struct flight *f = &s->g.flight[s->g.taken % s->window];

        if (!test(&f->result) || !test(&f->documents) || !test(&f->tokens))
            break;
    }
    return moved;
}

void peers_serve(struct comm *world, struct pool *pool, int window)
{
    struct server *s = mem_take(sizeof *s);

    s->world = world;
    s->pool = pool;
    s->window = window;
    s->work = mem_take((size_t)window * sizeof *s->work);
    s->g.flight = mem_take((size_t)window * sizeof *s->g.flight);
    while (!s->ended || s->g.taken < s->g.given) {
        int moved = take_heads(s);

        moved |= take_texts(s);
        moved |= send_results(s);
        moved |= finish_sends(s);
        if (!moved && !pool_help(pool))
            clock_sleep(50e-6);
    }
    for (int i = 0; i < window; i++) {
        batch_free(&s->work[i].batch);
        encoded_free(&s->work[i].r);
    }
    mem_give(s->work);
    mem_give(s->g.flight);
    mem_give(s);
}
