#include "data/sampler.h"

#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

/* Streams of random numbers: one for each epoch's order. */
#define RNG_EPOCH ((uint64_t)0x73616d70 << 32)

static enum status check_alike(const struct corpus *c, const struct tokens *t, struct err *e)
{
    if (t->vocab_size && t->vocab_size != c->vocab_size)
        return err_set(
            e, E_FILE, "%s: vocabulary size %lld, but %s has %lld; use one tokenizer for all files",
            t->path, (long long)t->vocab_size, c->file[0].path, (long long)c->vocab_size);
    if ((t->vocab_size || t->eod >= 0) && t->eod != c->eod)
        return err_set(
            e, E_FILE,
            "%s: end-of-document id %lld, but %s has %lld; use one tokenizer for all files",
            t->path, (long long)t->eod, c->file[0].path, (long long)c->eod);
    return OK;
}

static enum status file_add(struct corpus *c, const char *path, const struct tokens_stated *stated,
                            struct err *e)
{
    struct tokens *t = &c->file[c->nfiles];
    enum status st = tokens_open_as(t, path, stated, e);

    if (st != OK)
        return st;
    if (c->vocab_size == 0 && c->eod < 0)
        c->eod = t->eod;
    if (c->vocab_size == 0)
        c->vocab_size = t->vocab_size;
    c->nfiles++;
    c->count += t->count;
    return check_alike(c, t, e);
}

static void hash_files(struct corpus *c)
{
    struct hash_stream *h = hash_open();
    struct hash_text text;

    for (int i = 0; i < c->nfiles; i++)
        hash_add(h, c->file[i].hash, strlen(c->file[i].hash));
    text = hash_close(h);
    memcpy(c->hash, text.s, sizeof c->hash);
}

/* Samples of length S: first_sample, samples. */
static enum status number_samples(struct corpus *c, struct err *e)
{
    c->first_sample = mem_take(((size_t)c->nfiles + 1) * sizeof *c->first_sample);
    for (int i = 0; i < c->nfiles; i++) {
        c->samples += (c->file[i].count - 1) / c->S;
        c->first_sample[i + 1] = c->samples;
    }
    if (c->samples > 0)
        return OK;
    return err_set(
        e, E_FILE,
        "%s: %lld tokens are too few: one sample of sequence_length = %lld needs %lld in "
        "one file; make sequence_length smaller or take more text",
        c->file[0].path, (long long)c->count, (long long)c->S, (long long)c->S + 1);
}

enum status corpus_open(struct corpus *c, const char *const *paths, int n, int64_t S,
                        const struct tokens_stated *stated, struct err *e)
{
    enum status st = OK;

    BUG_IF(n < 1 || S < 1);
    *c = (struct corpus){ .S = S, .eod = -1 };
    c->file = mem_take((size_t)n * sizeof *c->file);
    for (int i = 0; i < n && st == OK; i++)
        st = file_add(c, paths[i], stated, e);
    if (st == OK)
        st = number_samples(c, e);
    if (st == OK)
        hash_files(c);
    else
        corpus_close(c);
    return st;
}

enum status corpus_view(struct corpus *v, const struct corpus *c, int64_t S, struct err *e)
{
    enum status st;

    *v = *c;
    v->S = S;
    v->samples = 0;
    v->borrowed = 1;
    if ((st = number_samples(v, e)) != OK)
        corpus_close(v);
    return st;
}

enum status corpus_limit(struct corpus *c, int64_t vocab_size, int look, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < c->nfiles && st == OK; i++) {
        struct tokens *t = &c->file[i];

        tokens_limit(t, vocab_size);
        if (look && (t->vocab_size == 0 || t->vocab_size > vocab_size))
            st = tokens_sample(t, e);
    }
    return st;
}

const struct tokens *corpus_without_documents(const struct corpus *c)
{
    for (int i = 0; i < c->nfiles; i++)
        if (c->file[i].ndocuments == 0 && c->file[i].eod < 0)
            return &c->file[i];
    return NULL;
}

void corpus_close(struct corpus *c)
{
    for (int i = 0; i < c->nfiles && !c->borrowed; i++)
        tokens_close(&c->file[i]);
    if (!c->borrowed)
        mem_give(c->file);
    mem_give(c->first_sample);
    *c = (struct corpus){ 0 };
}

int64_t sampler_index(const struct corpus *c, uint64_t seed, int shuffle, int64_t n)
{
    int64_t epoch = n / c->samples, place = n % c->samples;

    BUG_IF(n < 0);
    if (!shuffle)
        return place;
    return (int64_t)rng_permute(seed, RNG_EPOCH + (uint64_t)epoch, (uint64_t)c->samples,
                                (uint64_t)place);
}

/* The file that holds sample k: first_sample[i] <= k < first_sample[i + 1]. */
static int file_of(const struct corpus *c, int64_t k)
{
    int low = 0, high = c->nfiles;

    while (high - low > 1) {
        int middle = low + (high - low) / 2;

        if (c->first_sample[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void batch_fill_none(struct batch_rows *b, int64_t at, int64_t length)
{
    for (int64_t t = 0; t < length; t++) {
        b->ids[at + t] = 0;
        b->labels[at + t] = -1;
        b->place[at + t] = b->position[at + t] = (int32_t)t;
        b->start[at + t] = 0;
    }
}

/* Goes along the documents of f; or, where none are listed, a document ends at each eod. */
struct seams {
    const struct tokens *f;
    int64_t d, next; /* next: where the document behind d begins */
};

static struct seams seams_from(const struct tokens *f, int64_t first)
{
    struct seams s = { .f = f };

    if (f->ndocuments > 0) {
        s.d = tokens_document(f, first);
        s.next = tokens_first(f, s.d + 1);
    }
    return s;
}

/* Does a document begin at token `at`, behind a token with this id? E_FILE: the list is damaged. */
static enum status seams_at(struct seams *s, int64_t at, int32_t id, int *seam, struct err *e)
{
    *seam = at < s->f->count && (s->f->ndocuments > 0 ? s->next == at : id == s->f->eod);
    while (s->f->ndocuments > 0 && s->next == at && s->d + 1 < s->f->ndocuments)
        s->next = tokens_first(s->f, ++s->d + 1);
    if (s->f->ndocuments == 0 || s->next > at || at == s->f->count)
        return OK;
    return err_set(e, E_FILE,
                   "%s: document %lld starts at token %lld, before the one before it: the list of "
                   "documents is damaged: see `pretrain-data check`",
                   s->f->path, (long long)s->d + 1, (long long)s->next);
}

/* The documents of the sample that begins at token `first` of f. */
static enum status row_mask(const struct tokens *f, const struct batch_rows *b, int64_t at,
                            int64_t first, int64_t S, int mask_seams, struct err *e)
{
    struct seams s = seams_from(f, first);
    int64_t start = 0;

    for (int64_t t = 0; t < S; t++) {
        int seam;
        enum status st = seams_at(&s, first + t + 1, b->ids[at + t], &seam, e);

        if (st != OK)
            return st;
        b->start[at + t] = (int32_t)start;
        b->position[at + t] = (int32_t)(t - start);
        if (!seam)
            continue;
        start = t + 1;
        if (mask_seams)
            b->labels[at + t] = -1;
    }
    return OK;
}

void corpus_will_need(const struct corpus *c, int64_t k)
{
    int i = file_of(c, k);

    tokens_will_need(&c->file[i], (k - c->first_sample[i]) * c->S, c->S + 1);
}

enum status batch_fill_run(const struct tokens *f, struct batch_rows *b, int64_t at, int64_t length,
                           int64_t first, int64_t n, int document_mask, int mask_seams,
                           struct err *e)
{
    enum status st;

    batch_fill_none(b, at, length);
    if ((st = tokens_read(f, first, n, b->ids + at, e)) != OK ||
        (st = tokens_read(f, first + 1, min_i64(n, f->count - first - 1), b->labels + at, e)) != OK)
        return st;
    return document_mask ? row_mask(f, b, at, first, n, mask_seams, e) : OK;
}

enum status batch_fill(const struct corpus *c, struct batch_rows *b, int r, int64_t k,
                       int document_mask, int mask_seams, struct err *e)
{
    int64_t S = c->S, at = r * S;
    const struct tokens *f;

    BUG_IF(k >= c->samples);
    if (k < 0) {
        batch_fill_none(b, at, S);
        return OK;
    }
    f = &c->file[file_of(c, k)];
    return batch_fill_run(f, b, at, S, (k - c->first_sample[f - c->file]) * S, S, document_mask,
                          mask_seams, e);
}
