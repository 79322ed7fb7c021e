#include "data/sampler.h"

#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

/* Streams of random numbers: one for each epoch's order. */
#define RNG_EPOCH ((uint64_t)0x73616d70 << 32)

static enum status check_alike(const struct corpus *c, const struct tokens *t, struct err *e)
{
    if (t->vocab_size != c->vocab_size)
        return err_set(
            e, E_FILE, "%s: vocabulary size %lld, but %s has %lld; use one tokenizer for all files",
            t->path, (long long)t->vocab_size, c->file[0].path, (long long)c->vocab_size);
    if (t->eod != c->eod)
        return err_set(
            e, E_FILE,
            "%s: end-of-document id %lld, but %s has %lld; use one tokenizer for all files",
            t->path, (long long)t->eod, c->file[0].path, (long long)c->eod);
    return OK;
}

static enum status file_add(struct corpus *c, const char *path, struct err *e)
{
    struct tokens *t = &c->file[c->nfiles];
    enum status st = tokens_open(t, path, e);

    if (st != OK)
        return st;
    if (c->nfiles == 0) {
        c->vocab_size = t->vocab_size;
        c->eod = t->eod;
    }
    c->nfiles++;
    c->count += t->count;
    c->samples += (t->count - 1) / c->S;
    c->first_sample[c->nfiles] = c->samples;
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

enum status corpus_open(struct corpus *c, const char *const *paths, int n, int64_t S, struct err *e)
{
    enum status st = OK;

    BUG_IF(n < 1 || S < 1);
    *c = (struct corpus){ .S = S };
    c->file = mem_take((size_t)n * sizeof *c->file);
    c->first_sample = mem_take(((size_t)n + 1) * sizeof *c->first_sample);
    for (int i = 0; i < n && st == OK; i++)
        st = file_add(c, paths[i], e);
    if (st == OK && c->samples == 0)
        st = err_set(e, E_FILE,
                     "%s: %lld tokens are too few: one sample of sequence_length = %lld needs %lld "
                     "in one file; "
                     "make sequence_length smaller or take more text",
                     paths[0], (long long)c->count, (long long)S, (long long)S + 1);
    if (st == OK)
        hash_files(c);
    else
        corpus_close(c);
    return st;
}

void corpus_close(struct corpus *c)
{
    for (int i = 0; i < c->nfiles; i++)
        tokens_close(&c->file[i]);
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

/* Walks the documents along the sample that begins at token `first` of f. */
static void row_mask(const struct tokens *f, const struct batch_rows *b, int64_t at, int64_t first,
                     int64_t S, int mask_seams)
{
    int64_t d = tokens_document(f, first), start = 0;

    for (int64_t t = 0; t < S; t++) {
        int seam = d + 1 < f->ndocuments && f->documents[d + 1] == first + t + 1;

        b->start[at + t] = (int32_t)start;
        b->position[at + t] = (int32_t)(t - start);
        if (seam) {
            d++;
            start = t + 1;
            if (mask_seams)
                b->labels[at + t] = -1;
        }
    }
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
    if (document_mask)
        row_mask(f, b, at, first, n, mask_seams);
    return OK;
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
