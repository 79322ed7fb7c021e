#include "train/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"

/* ---- what the input says ---- */

static struct tokens_stated stated_of(int data_dtype, int64_t end_of_document)
{
    static const int types[] = { [DATA_SAID] = -1,
                                 [DATA_UINT16] = U16,
                                 [DATA_UINT32] = U32,
                                 [DATA_INT32] = I32,
                                 [DATA_INT64] = I64 };

    return (struct tokens_stated){ types[data_dtype], end_of_document };
}

/* Sources and stages as mixture_open takes them; texts and weights are borrowed from c or kept. */
struct named {
    struct mixture_source source[CONFIG_MANY];
    struct mixture_stage stage[CONFIG_MANY];
    const char *path[CONFIG_MANY][CONFIG_TEXT_LIST];
    double own[CONFIG_MANY]; /* the sources' own weights */
    int nsources, nstages;
};

static void name_source(struct named *n, const char *name, const struct config_texts *files,
                        struct tokens_stated stated, double weight)
{
    int i = n->nsources++;
    struct mixture_source *s = &n->source[i];

    snprintf(s->name, sizeof s->name, "%s", name);
    for (int k = 0; k < files->n; k++)
        n->path[i][k] = files->v[k];
    s->paths = n->path[i];
    s->npaths = files->n;
    s->stated = stated;
    n->own[i] = weight;
}

static struct named *named_of(const struct config *c)
{
    struct named *n = mem_take(sizeof *n);

    if (c->nsources == 0)
        name_source(n, "", &c->data.train, stated_of(c->data.data_dtype, c->data.end_of_document),
                    1);
    for (int i = 0; i < c->nsources; i++)
        name_source(n, c->sources[i].name, &c->sources[i].files,
                    stated_of(c->sources[i].data_dtype, c->sources[i].end_of_document),
                    c->sources[i].weight);
    n->nstages = c->nstages ? c->nstages : 1;
    n->stage[0] = (struct mixture_stage){ 0, c->train.sequence_length, n->own };
    for (int k = 0; k < c->nstages; k++) {
        const struct config_stage *g = &c->stages[k];

        n->stage[k].first = (g->start_step - 1) * c->train.global_batch_size;
        n->stage[k].S = g->sequence_length ? g->sequence_length : c->train.sequence_length;
        n->stage[k].weight = g->weights.n ? g->weights.v : n->own;
    }
    return n;
}

int64_t sources_length(const struct config *c, int64_t step)
{
    int64_t S = c->train.sequence_length;

    for (int k = 0; k < c->nstages && c->stages[k].start_step <= step; k++)
        S = c->stages[k].sequence_length ? c->stages[k].sequence_length : c->train.sequence_length;
    return S;
}

int64_t sources_tokens(const struct config *c, int64_t steps)
{
    int64_t sum = 0;

    if (c->nstages == 0)
        return steps * c->train.global_batch_size * c->train.sequence_length;
    for (int k = 0; k < c->nstages; k++) {
        int64_t from = c->stages[k].start_step - 1;
        int64_t to = k + 1 < c->nstages ? c->stages[k + 1].start_step - 1 : steps;

        if (from < steps)
            sum += (min_i64(to, steps) - from) * sources_length(c, from + 1);
    }
    return sum * c->train.global_batch_size;
}

/* ---- open ---- */

/* 0: nobody says it. */
static int64_t vocabulary(const struct sources *s, const struct config *c)
{
    return c->model.vocab_size ? c->model.vocab_size : sources_vocabulary(s);
}

static enum status check(struct corpus *data, const struct config *c, int64_t vocab_size, int parts,
                         struct err *e)
{
    const struct tokens *f = c->data.document_mask ? corpus_without_documents(data) : NULL;

    if (f)
        return err_set(e, E_INPUT,
                       "data.document_mask = .true., but %s (%s) does not say where documents end: "
                       "give end_of_document, the id that ends them, or convert the file",
                       f->path, f->format);
    if (vocab_size > 0)
        return corpus_limit(data, vocab_size, parts & SOURCES_LOOK, e);
    return err_set(e, E_INPUT,
                   "model.vocab_size = 0 takes the data's, but %s (%s) does not say it: give "
                   "vocab_size",
                   data->file[0].path, data->file[0].format);
}

static enum status open_set(struct sources *s, const char *name, const char *path,
                            struct tokens_stated stated, const struct config *c, int parts,
                            struct err *e)
{
    struct sources_set *set = &s->validation[s->nvalidations];
    int first = s->nvalidations == 0;
    enum status st = corpus_open(&set->corpus, &path, 1, c->train.sequence_length, &stated, e);

    if (st != OK)
        return st;
    s->nvalidations++;
    snprintf(set->name, sizeof set->name, "%s", name);
    snprintf(set->key, sizeof set->key, "validation_loss%s%s", first ? "" : "_", first ? "" : name);
    return check(&set->corpus, c, vocabulary(s, c), parts, e);
}

static enum status open_validation(struct sources *s, const struct config *c, int parts,
                                   struct err *e)
{
    enum status st = OK;

    s->validation = mem_take(((size_t)c->nvalidations + 1) * sizeof *s->validation);
    if (c->data.validation[0])
        st = open_set(s, "", c->data.validation,
                      stated_of(c->data.data_dtype, c->data.end_of_document), c, parts, e);
    for (int i = 0; i < c->nvalidations && st == OK; i++) {
        const struct config_validation *v = &c->validations[i];

        st = open_set(s, v->name, v->file, stated_of(v->data_dtype, v->end_of_document), c, parts,
                      e);
    }
    return st;
}

static enum status open_train(struct sources *s, const struct config *c, int parts, struct err *e)
{
    struct named *n = named_of(c);
    enum status st = mixture_open(&s->train, n->source, n->nsources, n->stage, n->nstages,
                                  (uint64_t)c->run.seed, c->data.shuffle, e);

    mem_give(n);
    for (int i = 0; i < s->train.nsources && st == OK; i++)
        st = check(&s->train.source[i], c, vocabulary(s, c), parts, e);
    return st;
}

enum status sources_open(struct sources *s, const struct config *c, int parts, struct err *e)
{
    enum status st = OK;

    *s = (struct sources){ 0 };
    if (parts & SOURCES_TRAIN)
        st = open_train(s, c, parts, e);
    if (st == OK && parts & SOURCES_VALIDATION)
        st = open_validation(s, c, parts, e);
    if (st != OK)
        sources_close(s);
    return st;
}

void sources_close(struct sources *s)
{
    for (int i = 0; i < s->nvalidations; i++)
        corpus_close(&s->validation[i].corpus);
    mem_give(s->validation);
    mixture_close(&s->train);
    *s = (struct sources){ 0 };
}

static int is_absent(const char *path)
{
    if (!path[0] || file_exists(path))
        return 0;
    warn("data file '%s' does not exist yet: make it with pretrain-data before the run", path);
    return 1;
}

int sources_absent(const struct config *c)
{
    struct named *n = named_of(c);
    int train = 0, validation = is_absent(c->data.validation);

    for (int i = 0; i < n->nsources; i++)
        for (int k = 0; k < n->source[i].npaths; k++)
            train |= is_absent(n->source[i].paths[k]);
    for (int i = 0; i < c->nvalidations; i++)
        validation |= is_absent(c->validations[i].file);
    mem_give(n);
    return (train ? SOURCES_TRAIN : 0) | (validation ? SOURCES_VALIDATION : 0);
}

int64_t sources_vocabulary(const struct sources *s)
{
    for (int i = 0; i < s->train.nsources; i++)
        if (s->train.source[i].vocab_size)
            return s->train.source[i].vocab_size;
    return 0;
}

int64_t sources_eod(const struct sources *s)
{
    for (int i = 0; i < s->train.nsources; i++)
        if (s->train.source[i].eod >= 0)
            return s->train.source[i].eod;
    return -1;
}

const struct tokens *sources_tokenizer(const struct sources *s)
{
    for (int i = 0; i < s->train.nsources; i++)
        for (int k = 0; k < s->train.source[i].nfiles; k++)
            if (s->train.source[i].file[k].tokenizer_json)
                return &s->train.source[i].file[k];
    return &s->train.source[0].file[0];
}

/* ---- the screen ---- */

static void say_plain(const struct sources *s, const struct config *c)
{
    char tokens[32], samples[32], more[80] = "", sets[32];
    const struct corpus *d = &s->train.stage[0].part[0].view;
    int64_t n = c->train.train_steps * c->train.global_batch_size;

    if (s->nvalidations == 1)
        snprintf(more, sizeof more, "; validation %s samples",
                 log_thousands(sets, s->validation[0].corpus.samples));
    say("data    %s%s: %s tokens, %s samples; %" PRId64 " steps are %.2f epochs%s", d->file[0].path,
        d->nfiles > 1 ? " and more" : "", log_thousands(tokens, d->count),
        log_thousands(samples, d->samples), c->train.train_steps, mixture_epochs(&s->train, 0, n),
        more);
}

static void say_source(const struct sources *s, const struct config *c, int i)
{
    const struct mixture *m = &s->train;
    int64_t n = c->train.train_steps * c->train.global_batch_size;
    char tokens[32];

    say("data    %-12s %8.4f %%: %s%s, %s tokens; %" PRId64 " steps are %.2f epochs",
        m->name[i].text, 100.0 * m->stage[0].part[i].units / INTERLEAVE_UNIT,
        m->source[i].file[0].path, m->source[i].nfiles > 1 ? " and more" : "",
        log_thousands(tokens, m->source[i].count), c->train.train_steps, mixture_epochs(m, i, n));
}

/* A stage after the first. */
static void say_stage(const struct sources *s, const struct config *c, int k)
{
    const struct mixture *m = &s->train;
    char text[2048];
    int n = snprintf(text, sizeof text, "stage   from step %" PRId64 ": sequences of %" PRId64,
                     c->stages[k].start_step, m->stage[k].S);

    for (int i = 0; i < m->nsources && m->nsources > 1 && n < (int)sizeof text - 100; i++)
        if (m->stage[k].part[i].units)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %s %.4f %%", m->name[i].text,
                          100.0 * m->stage[k].part[i].units / INTERLEAVE_UNIT);
    say("%s%s", text,
        c->stages[k].start_step > c->train.train_steps ? " (after the last step)" : "");
}

void sources_say(const struct sources *s, const struct config *c)
{
    char samples[32];

    if (c->nsources == 0)
        say_plain(s, c);
    for (int i = 0; i < s->train.nsources && c->nsources > 0; i++)
        say_source(s, c, i);
    for (int k = 1; k < s->train.nstages; k++)
        say_stage(s, c, k);
    for (int i = 0; i < s->nvalidations && (s->nvalidations > 1 || c->nsources > 0); i++)
        say("data    %s: %s, %s samples", s->validation[i].key,
            s->validation[i].corpus.file[0].path,
            log_thousands(samples, s->validation[i].corpus.samples));
}
