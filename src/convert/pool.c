#include "convert/pool.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/arena.h"

struct pool {
    struct encode_how how;
    pthread_mutex_t m;
    pthread_cond_t put, done;
    struct work **queue; /* [room], those from `begun` to `given` wait, at i % room */
    int64_t begun, given;
    int room, threads, closing;
    struct encode *own; /* the caller's */
    pthread_t *thread;  /* [threads - 1] */
};

static void lock(struct pool *p)
{
    pthread_mutex_lock(&p->m);
}

static void unlock(struct pool *p)
{
    pthread_mutex_unlock(&p->m);
}

/* With the lock, which is not held while it encodes. */
static void encode_one(struct pool *p, struct encode *mine)
{
    struct work *w = p->queue[p->begun++ % p->room];

    unlock(p);
    encode_run(mine, &w->batch.h, w->batch.text, &w->r);
    lock(p);
    w->done = 1;
    pthread_cond_signal(&p->done);
}

static void *worker(void *self)
{
    struct pool *p = self;
    struct encode *mine = encode_open(&p->how);

    lock(p);
    for (;;) {
        while (p->begun == p->given && !p->closing)
            pthread_cond_wait(&p->put, &p->m);
        if (p->begun == p->given)
            break;
        encode_one(p, mine);
    }
    unlock(p);
    encode_close(mine);
    return NULL;
}

struct pool *pool_open(const struct encode_how *how, int threads, int room)
{
    struct pool *p = mem_take(sizeof *p);
    sigset_t all, old;

    p->how = *how;
    p->room = room;
    p->threads = threads;
    p->queue = mem_take((size_t)room * sizeof *p->queue);
    p->thread = mem_take((size_t)threads * sizeof *p->thread);
    pthread_mutex_init(&p->m, NULL);
    pthread_cond_init(&p->put, NULL);
    pthread_cond_init(&p->done, NULL);
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < threads - 1; i++) {
        int rc = pthread_create(&p->thread[i], NULL, worker, p);

        if (rc != 0)
            die(E_RESOURCE, "thread %d of %d cannot be started: %s", i + 2, threads, strerror(rc));
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    p->own = encode_open(how);
    return p;
}

void pool_close(struct pool *p)
{
    lock(p);
    p->closing = 1;
    pthread_cond_broadcast(&p->put);
    unlock(p);
    for (int i = 0; i < p->threads - 1; i++)
        pthread_join(p->thread[i], NULL);
    while (pool_help(p))
        ;
    pthread_mutex_destroy(&p->m);
    pthread_cond_destroy(&p->put);
    pthread_cond_destroy(&p->done);
    encode_close(p->own);
    mem_give(p->queue);
    mem_give(p->thread);
    mem_give(p);
}

void pool_put(struct pool *p, struct work *w)
{
    lock(p);
    BUG_IF(p->given - p->begun == p->room);
    w->done = 0;
    p->queue[p->given++ % p->room] = w;
    pthread_cond_signal(&p->put);
    unlock(p);
}

int pool_is_done(struct pool *p, const struct work *w)
{
    int done;

    lock(p);
    done = w->done;
    unlock(p);
    return done;
}

void pool_wait(struct pool *p, const struct work *w)
{
    lock(p);
    while (!w->done)
        pthread_cond_wait(&p->done, &p->m);
    unlock(p);
}

int pool_help(struct pool *p)
{
    int some;

    lock(p);
    some = p->begun < p->given;
    if (some)
        encode_one(p, p->own);
    unlock(p);
    return some;
}
