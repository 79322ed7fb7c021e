#include "convert/commit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/log.h"
#include "convert/seen.h"
#include "data/spool.h"

enum part { TRAIN, VALIDATION };

struct commit {
    struct commit_how how;
    struct tokens_writer *writer[JOURNAL_PARTS]; /* NULL: no such part */
    struct seen *seen;                           /* NULL: duplicates stay */
    struct spool *hashes;
    char journal_path[4096 + 64], hashes_path[4096 + 64];
    struct journal journal;
    struct journal_point p; /* what is committed */
    int has_journal;
    double written; /* when */
};

/* Standard input has no journal: it cannot be read again. */
static int is_journaled(const struct commit *c)
{
    return c->how.list->bytes >= 0;
}

/* F to twelve decimal places, so that floor(dF) is exact: 0.29 of 100 documents are 29. */
static enum part part_of(const struct commit *c, int64_t d)
{
    const int64_t one = 1000000000000;
    __int128 f = llround(c->how.fraction * (double)one);

    return c->how.validation && (d + 1) * f / one > d * f / one ? VALIDATION : TRAIN;
}

const struct journal_point *commit_point(const struct commit *c)
{
    return &c->p;
}

/* ---- begin ---- */

static enum status open_writers(struct commit *c, const struct journal_point *from, struct err *e)
{
    const char *names[JOURNAL_PARTS] = { c->how.out, c->how.validation };
    const struct document_ids *x = c->how.x;
    enum status st = OK;

    for (int i = 0; i < JOURNAL_PARTS && st == OK; i++) {
        struct tokens_head h = { names[i], x->vocab_size, x->eod, x->json, x->bytes };

        if (names[i])
            st = tokens_writer_open_at(&c->writer[i], &h, &from->mark[i], e);
    }
    return st;
}

static void leave_writers(struct commit *c)
{
    for (int i = 0; i < JOURNAL_PARTS; i++) {
        tokens_writer_leave(c->writer[i]);
        c->writer[i] = NULL;
    }
}

static enum status open_hashes(struct commit *c, int64_t bytes, struct err *e)
{
    uint64_t h[1024][2];
    enum status st;

    if (!c->how.drop_duplicates)
        return OK;
    c->seen = seen_open();
    st = spool_open(&c->hashes, c->hashes_path, bytes, e);
    for (int64_t at = 0; at < bytes && st == OK; at += (int64_t)sizeof h) {
        int64_t n = min_i64((int64_t)sizeof h, bytes - at);

        st = spool_read(c->hashes, h, (size_t)n, at, e);
        for (int64_t i = 0; i < n / (int64_t)sizeof h[0] && st == OK; i++)
            seen_add(c->seen, h[i]);
    }
    return st;
}

/* What a journal left, if this is the same work. */
static int take_up(struct commit *c)
{
    struct journal *old = mem_take(sizeof *old);
    struct err *e = mem_take(sizeof *e);
    const struct journal_point *from = NULL;
    char *why = mem_take(sizeof e->text), documents[32], tokens[32];

    if (!is_journaled(c))
        snprintf(why, sizeof e->text, "standard input cannot be read again");
    else if (journal_read(c->journal_path, old, e) != OK)
        snprintf(why, sizeof e->text, "%s", e->text);
    else
        from = journal_resume(old, &c->journal, c->how.list, why);
    if (from && (open_writers(c, from, e) != OK || open_hashes(c, from->hashes, e) != OK)) {
        snprintf(why, sizeof e->text, "%s", e->text);
        leave_writers(c);
        spool_close(c->hashes, 0);
        seen_close(c->seen);
        c->hashes = NULL;
        c->seen = NULL;
        from = NULL;
    }
    if (from) {
        c->p = *from;
        c->journal.begin = old->begin;
        say("going on from %s: %s tokens in %s documents are there", c->journal_path,
            log_thousands(tokens, from->mark[TRAIN].tokens + from->mark[VALIDATION].tokens),
            log_thousands(documents, from->kept));
    } else {
        say("starting over, %s does not serve: %s", c->journal_path, why);
    }
    mem_give(old);
    mem_give(e);
    mem_give(why);
    return from != NULL;
}

static enum status start(struct commit *c, struct err *e)
{
    enum status st = open_writers(c, &c->p, e);

    if (st == OK)
        st = journal_remove(c->journal_path, e);
    if (st == OK)
        st = file_remove(c->hashes_path, e);
    c->has_journal = st != OK && c->has_journal;
    return st == OK ? open_hashes(c, 0, e) : st;
}

enum status commit_open(struct commit **out, const struct commit_how *how, struct place *from,
                        struct err *e)
{
    struct commit *c = mem_take(sizeof *c);
    enum status st = OK;

    *out = c;
    c->how = *how;
    if (!is_journaled(c))
        say("standard input cannot be read again: if this run is ended, the next starts over");
    c->journal.tokenizer = hash_bytes(how->x->json, how->x->bytes);
    c->journal.replace = how->replace;
    snprintf(c->journal.options, sizeof c->journal.options, "%s", how->options);
    tokens_name_beside(c->journal_path, sizeof c->journal_path, how->out, "journal", 0);
    tokens_name_beside(c->hashes_path, sizeof c->hashes_path, how->out, "part-hashes", 0);
    c->has_journal = file_exists(c->journal_path);
    if (!c->has_journal || !take_up(c))
        st = start(c, e);
    *from = c->p.place;
    c->written = clock_now();
    return st;
}

/* ---- batches ---- */

static enum status sync_all(struct commit *c, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < JOURNAL_PARTS && st == OK; i++)
        if (c->writer[i])
            st = tokens_writer_sync(c->writer[i], &c->p.mark[i], e);
    if (st == OK && c->hashes) {
        c->p.hashes = spool_bytes(c->hashes);
        st = spool_sync(c->hashes, e);
    }
    return st;
}

static enum status write_journal(struct commit *c, struct err *e)
{
    int64_t at = c->p.place.input;
    enum status st = sync_all(c, e);

    if (st != OK)
        return st;
    c->journal.now = c->p;
    c->journal.before = journal_inputs(c->how.list, 0, at);
    c->journal.at = journal_inputs(c->how.list, at, at + 1);
    st = journal_write(c->journal_path, &c->journal, e);
    c->has_journal |= st == OK;
    c->written = clock_now();
    return st;
}

static void note_begin(struct commit *c, int64_t input)
{
    for (int i = 0; i < JOURNAL_PARTS; i++)
        if (c->writer[i])
            c->p.mark[i] = tokens_writer_mark(c->writer[i]);
    if (c->hashes)
        c->p.hashes = spool_bytes(c->hashes);
    c->journal.begin = c->p;
    c->journal.begin.place = (struct place){ .input = input };
}

/* Of the last document that was kept. */
static struct tokens_writer *present(const struct commit *c)
{
    return c->writer[part_of(c, c->p.kept - 1)];
}

static enum status begin_document(struct commit *c, const uint64_t hash[2], struct err *e)
{
    enum status st = OK;

    c->p.documents++;
    c->p.dropping = c->seen && !seen_add(c->seen, hash);
    if (c->p.dropping) {
        c->p.duplicates++;
        return OK;
    }
    if (c->hashes)
        st = spool_add(c->hashes, hash, 2 * sizeof *hash, e);
    c->p.kept++;
    tokens_writer_document(present(c));
    return st;
}

static enum status add_documents(struct commit *c, const struct work *w, struct err *e)
{
    const struct batch_head *h = &w->batch.h;
    size_t size = dtype_size(tokens_writer_dtype(c->how.x->vocab_size));
    const char *tokens = w->r.tokens;
    int in_parts = h->format == INPUT_TEXT && !(h->first && h->last);
    enum status st = OK;

    for (int64_t i = 0; i < w->r.h.ndocuments && st == OK; i++) {
        const struct encoded_document *d = &w->r.document[i];

        if (h->format != INPUT_TEXT || h->first)
            st = begin_document(c, in_parts ? w->batch.whole : d->hash, e);
        if (st == OK && !c->p.dropping)
            st = tokens_writer_stored(present(c), tokens, d->tokens, e);
        tokens += (size_t)d->tokens * size;
    }
    return st;
}

enum status commit_add(struct commit *c, const struct work *w, struct err *e)
{
    enum status st = (enum status)w->r.h.status;

    if (st != OK)
        return err_set(e, st, "%s%s", input_name(&c->how.list->at[w->batch.input]), w->r.e.text);
    if (w->batch.input > c->p.place.input || (w->batch.h.at == 0 && w->batch.input == 0))
        note_begin(c, w->batch.input);
    if ((st = add_documents(c, w, e)) != OK)
        return st;
    c->p.blank += w->r.h.blank;
    c->p.specials += w->r.h.specials;
    c->p.replaced += w->r.h.replaced;
    c->p.place = w->batch.after;
    if (!is_journaled(c) || clock_now() - c->written < c->how.journal_seconds)
        return OK;
    return write_journal(c, e);
}

/* ---- the end ---- */

static enum status check_parts(const struct commit *c, struct err *e)
{
    int64_t n = c->p.kept;

    if (n == 0)
        return err_set(e, E_FILE, "%s: no documents in it", c->how.list->at[0].path);
    for (int i = 0; i < JOURNAL_PARTS && c->how.validation; i++)
        if (tokens_writer_count(c->writer[i]) == 0)
            return err_set(
                e, E_INPUT,
                "--validation-fraction %g: of %lld document%s none is left for %s; choose another "
                "fraction, or give more documents (a text file is one, a jsonl line is one)",
                c->how.fraction, (long long)n, n == 1 ? "" : "s",
                i == TRAIN ? "training" : "validation");
    return OK;
}

/* Both files are complete before the first gets its name. */
enum status commit_finish(struct commit *c, struct err *e)
{
    enum status st = check_parts(c, e);

    for (int i = 0; i < JOURNAL_PARTS && st == OK; i++)
        if (c->writer[i])
            st = tokens_writer_finish(c->writer[i], e);
    for (int i = 0; i < JOURNAL_PARTS && st == OK; i++)
        if (c->writer[i]) {
            st = tokens_writer_close(c->writer[i], e);
            c->writer[i] = NULL;
        }
    if (st == OK)
        st = journal_remove(c->journal_path, e);
    return st;
}

void commit_close(struct commit *c, enum status st, struct err *e)
{
    int keep = st != OK && c && c->has_journal;

    if (!c)
        return;
    for (int i = 0; i < JOURNAL_PARTS; i++)
        (keep ? tokens_writer_leave : tokens_writer_cancel)(c->writer[i]);
    spool_close(c->hashes, !keep);
    seen_close(c->seen);
    if (keep && e) {
        size_t n = strlen(e->text);

        snprintf(e->text + n, sizeof e->text - n,
                 " (what was done is kept: the same command goes on from %s)", c->journal_path);
    }
    mem_give(c);
}
