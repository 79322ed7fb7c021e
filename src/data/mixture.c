#include "data/mixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* ---- open ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct mixture_name *)a)->text, ((const struct mixture_name *)b)->text);
}

/* A nameless source, the only one, has the order that the seed alone gives. */
static uint64_t key_of(const char *name)
{
    struct hash_text h = hash_bytes(name, strlen(name));

    h.s[16] = '\0';
    return *name ? strtoull(h.s, NULL, 16) : 0;
}

static enum status open_source(struct mixture *m, int i, const struct mixture_source *given,
                               struct err *e)
{
    const struct mixture_source *g = &given[m->name[i].given];
    enum status st = corpus_open(&m->source[i], g->paths, g->npaths, 1, &g->stated, e);

    if (st != OK && g->name[0])
        err_prefix(e, "source '%s'", g->name);
    return st;
}

/* Sources must speak of one vocabulary, as files of one do. */
static enum status check_alike(const struct mixture *m, struct err *e)
{
    const struct corpus *a = NULL;

    for (int i = 0; i < m->nsources; i++) {
        const struct corpus *b = &m->source[i];

        if (!b->vocab_size)
            continue;
        if (a && (a->vocab_size != b->vocab_size || a->eod != b->eod))
            return err_set(e, E_FILE,
                           "%s: vocabulary size %lld and end-of-document id %lld, but %s has %lld "
                           "and %lld; use one tokenizer for all files",
                           b->file[0].path, (long long)b->vocab_size, (long long)b->eod,
                           a->file[0].path, (long long)a->vocab_size, (long long)a->eod);
        a = b;
    }
    return OK;
}

static enum status open_stage(struct mixture *m, int k, const struct mixture_stage *given,
                              struct err *e)
{
    struct mixture_span *s = &m->stage[k];
    double weight[INTERLEAVE_SOURCES];
    int units[INTERLEAVE_SOURCES], lost;
    enum status st = OK;

    s->first = given->first;
    s->S = given->S;
    for (int i = 0; i < m->nsources; i++)
        weight[i] = given->weight[m->name[i].given];
    if ((lost = interleave_round(weight, m->nsources, units)) >= 0)
        return err_set(
            e, E_INPUT,
            "source '%s': its weight, %g, is less than 1/65536 of all: give it more, or 0",
            m->name[lost].text, weight[lost]);
    interleave_make(&s->order, units, m->nsources);
    s->part = mem_take((size_t)m->nsources * sizeof *s->part);
    for (int i = 0; i < m->nsources && st == OK; i++) {
        s->part[i].units = units[i];
        if (units[i])
            st = corpus_view(&s->part[i].view, &m->source[i], s->S, e);
    }
    return st;
}

/* Samples of a source that a stage takes, when it ends before sample n. */
static int64_t taken(const struct mixture_span *s, int i, int64_t n)
{
    return s->part[i].units ? interleave_count(&s->order, n - s->first, i) : 0;
}

/* Where each source stands when each stage begins, by tokens. */
static void place_stages(struct mixture *m)
{
    for (int i = 0; i < m->nsources; i++) {
        int64_t tokens = 0;

        for (int k = 0; k < m->nstages; k++) {
            struct mixture_span *s = &m->stage[k];

            s->part[i].begin = ceil_div(tokens, s->S);
            if (k + 1 < m->nstages)
                tokens = (s->part[i].begin + taken(s, i, s[1].first)) * s->S;
        }
    }
}

enum status mixture_open(struct mixture *m, const struct mixture_source *source, int nsources,
                         const struct mixture_stage *stage, int nstages, uint64_t seed, int shuffle,
                         struct err *e)
{
    enum status st = OK;

    BUG_IF(nsources < 1 || nsources > INTERLEAVE_SOURCES || nstages < 1 || stage[0].first != 0);
    *m = (struct mixture){
        .seed = seed, .shuffle = shuffle, .nsources = nsources, .nstages = nstages
    };
    m->source = mem_take((size_t)nsources * sizeof *m->source);
    m->stage = mem_take((size_t)nstages * sizeof *m->stage);
    for (int i = 0; i < nsources; i++) {
        m->name[i].given = i;
        m->name[i].key = key_of(source[i].name);
        snprintf(m->name[i].text, sizeof m->name[i].text, "%s", source[i].name);
    }
    qsort(m->name, (size_t)nsources, sizeof *m->name, by_text);
    for (int i = 0; i < nsources && st == OK; i++)
        st = open_source(m, i, source, e);
    if (st == OK)
        st = check_alike(m, e);
    for (int k = 0; k < nstages && st == OK; k++)
        st = open_stage(m, k, &stage[k], e);
    if (st == OK)
        place_stages(m);
    else
        mixture_close(m);
    return st;
}

void mixture_close(struct mixture *m)
{
    for (int k = 0; k < m->nstages; k++) {
        struct mixture_span *s = &m->stage[k];

        for (int i = 0; i < m->nsources && s->part; i++)
            corpus_close(&s->part[i].view);
        mem_give(s->part);
        interleave_free(&s->order);
    }
    for (int i = 0; i < m->nsources && m->source; i++)
        corpus_close(&m->source[i]);
    mem_give(m->source);
    mem_give(m->stage);
    *m = (struct mixture){ 0 };
}

/* ---- draw ---- */

static int stage_of(const struct mixture *m, int64_t n)
{
    int k = m->nstages - 1;

    while (m->stage[k].first > n)
        k--;
    return k;
}

struct mixture_draw mixture_draw(const struct mixture *m, int64_t n)
{
    int k = stage_of(m, n);
    const struct mixture_span *s = &m->stage[k];
    int64_t before;
    int i = interleave_draw(&s->order, n - s->first, &before);
    const struct mixture_part *p = &s->part[i];

    return (struct mixture_draw){ k, i, &p->view,
                                  sampler_index(&p->view, m->seed ^ m->name[i].key, m->shuffle,
                                                p->begin + before) };
}

int64_t mixture_count(const struct mixture *m, int source, int64_t n)
{
    int64_t sum = 0;

    for (int k = 0; k < m->nstages && m->stage[k].first < n; k++) {
        int64_t end = k + 1 < m->nstages ? min_i64(n, m->stage[k + 1].first) : n;

        sum += taken(&m->stage[k], source, end);
    }
    return sum;
}

double mixture_epochs(const struct mixture *m, int source, int64_t n)
{
    double sum = 0;

    for (int k = 0; k < m->nstages && m->stage[k].first < n; k++) {
        int64_t end = k + 1 < m->nstages ? min_i64(n, m->stage[k + 1].first) : n;

        if (m->stage[k].part[source].units)
            sum += (double)taken(&m->stage[k], source, end) /
                   (double)m->stage[k].part[source].view.samples;
    }
    return sum;
}
