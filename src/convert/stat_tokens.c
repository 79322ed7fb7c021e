#include "convert/stat_tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "convert/progress.h"

enum { PIECE = 1 << 16, COUNTED = 1 << 27 /* ids: a GiB of counts */, BAR = 40, MOST_COMMON = 10 };

struct reader {
    struct stat_tokens *s;
    const struct tokens *t;
    int64_t room, documents; /* of s->count, s->length */
    int64_t begin;           /* of the document that is being read */
};

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

static int ascending(const void *a, const void *b)
{
    return descending(b, a);
}

static void end_document(struct reader *r, int64_t at)
{
    struct stat_tokens *s = r->s;

    if (at == r->begin) /* an empty one is none */
        return;
    if (s->ndocuments == r->documents) {
        int64_t room = r->documents ? 2 * r->documents : 1024;

        s->length = mem_grow(s->length, (size_t)r->documents * 8, (size_t)room * 8);
        r->documents = room;
    }
    s->length[s->ndocuments++] = at - r->begin;
    r->begin = at;
}

static enum status count_ids(struct reader *r, const int32_t *ids, int64_t n, int64_t at,
                             struct err *e)
{
    struct stat_tokens *s = r->s;

    for (int64_t i = 0; i < n; i++) {
        if (ids[i] >= COUNTED)
            return err_set(e, E_FILE,
                           "%s: token %" PRId64 " is %d: ids above %d are not counted; is %s the "
                           "type of the file?",
                           r->t->path, at + i, ids[i], COUNTED - 1, dtype_name(r->t->dtype));
        if (ids[i] >= r->room) {
            int64_t room = max_i64(2 * r->room, ids[i] + 1);

            s->count = mem_grow(s->count, (size_t)r->room * 8, (size_t)room * 8);
            r->room = room;
        }
        s->count[ids[i]]++;
        s->vocab_size = max_i64(s->vocab_size, ids[i] + 1);
        if (r->t->ndocuments == 0 && r->t->eod >= 0 && ids[i] == r->t->eod)
            end_document(r, at + i + 1);
    }
    return OK;
}

static enum status read_ids(struct reader *r, struct err *e)
{
    int32_t *ids = mem_take(PIECE * sizeof *ids);
    struct progress p = progress_start("tokens", r->t->count);
    enum status st = OK;

    for (int64_t at = 0; at < r->t->count && st == OK; at += PIECE) {
        int64_t n = min_i64(PIECE, r->t->count - at);

        progress_show(&p, at);
        st = tokens_read(r->t, at, n, ids, e);
        if (st == OK)
            st = count_ids(r, ids, n, at, e);
    }
    progress_end(&p);
    mem_give(ids);
    return st;
}

static enum status read_documents(struct reader *r, struct err *e)
{
    for (int64_t d = 1; d <= r->t->ndocuments; d++) {
        int64_t end = tokens_first(r->t, d);

        if (end < r->begin || end > r->t->count)
            return err_set(e, E_FILE,
                           "%s: document %" PRId64 " begins at token %" PRId64
                           ", before the one before it; see `pretrain-data check`",
                           r->t->path, d, end);
        end_document(r, end);
    }
    return OK;
}

static void sum_up(struct stat_tokens *s)
{
    for (int64_t i = 0; i < s->vocab_size; i++)
        s->distinct += s->count[i] > 0;
    s->rank = mem_take((size_t)s->distinct * 8);
    for (int64_t i = 0, k = 0; i < s->vocab_size; i++)
        if (s->count[i] > 0)
            s->rank[k++] = s->count[i];
    qsort(s->rank, (size_t)s->distinct, 8, descending);
    if (s->ndocuments)
        qsort(s->length, (size_t)s->ndocuments, 8, ascending);
    for (int64_t d = 0; d < s->ndocuments; d++)
        s->bin[63 - __builtin_clzll((unsigned long long)s->length[d])]++;
}

enum status stat_tokens_read(struct stat_tokens *s, const struct tokens *t, struct err *e)
{
    struct reader r = { .s = s, .t = t };
    enum status st;

    *s = (struct stat_tokens){ .ntokens = t->count };
    st = read_ids(&r, e);
    if (st == OK && t->ndocuments > 0)
        st = read_documents(&r, e);
    else if (st == OK && t->eod >= 0)
        end_document(&r, t->count);
    if (st == OK)
        sum_up(s);
    else
        stat_tokens_free(s);
    return st;
}

void stat_tokens_free(struct stat_tokens *s)
{
    mem_give(s->count);
    mem_give(s->rank);
    mem_give(s->length);
    *s = (struct stat_tokens){ 0 };
}

/* ---- the text ---- */

static void say_lengths(const struct stat_tokens *s)
{
    char a[5][32], low[32];
    int64_t most = 1, last = s->ndocuments - 1;
    int end = STAT_BINS;

    if (s->ndocuments == 0) {
        say("documents     not listed: give the id that ends them, --eod");
        return;
    }
    say("documents     %s; tokens in one: least %s, quartiles %s, %s, %s, most %s",
        log_thousands(low, s->ndocuments), log_thousands(a[0], s->length[0]),
        log_thousands(a[1], s->length[last / 4]), log_thousands(a[2], s->length[last / 2]),
        log_thousands(a[3], s->length[last - last / 4]), log_thousands(a[4], s->length[last]));
    for (int b = 0; b < STAT_BINS; b++)
        most = max_i64(most, s->bin[b]);
    while (end > 0 && s->bin[end - 1] == 0)
        end--;
    for (int b = 0; b < end; b++) {
        int n = (int)((s->bin[b] * BAR + most - 1) / most);

        say("  from %11s %11s%s%.*s", log_thousands(low, INT64_C(1) << b),
            log_thousands(a[0], s->bin[b]), n ? "  " : "", n,
            "########################################");
    }
}

static void say_tokens(const struct stat_tokens *s, const struct tokens *t)
{
    char a[32], b[32];
    int64_t shown = 0;

    say("tokens        %s; %s ids are there%s%s", log_thousands(a, s->ntokens),
        log_thousands(b, s->distinct), t->vocab_size ? " of a vocabulary of " : "",
        t->vocab_size ? log_thousands((char[32]){ "" }, t->vocab_size) : "");
    for (int64_t k = 0; k < s->distinct && k < MOST_COMMON; k++)
        for (int64_t i = 0; i < s->vocab_size; i++) {
            int64_t first = k == 0 || s->rank[k] != s->rank[k - 1];

            if (s->count[i] != s->rank[k] || !first || shown >= MOST_COMMON)
                continue;
            shown++;
            say("  id %9" PRId64 " %11s  %7.3f %%", i, log_thousands(a, s->count[i]),
                100.0 * (double)s->count[i] / (double)s->ntokens);
        }
}

enum status stat_tokens(const char *path, const struct tokens_stated *stated, const char *svg,
                        struct err *e)
{
    struct stat_tokens s;
    struct tokens t;
    enum status st = tokens_open_as(&t, path, stated, e);

    if (st == OK && svg)
        st = output_check(svg, path, e);
    if (st == OK && (st = stat_tokens_read(&s, &t, e)) == OK) {
        say("file          %s (%s, %s)", path, t.format, dtype_name(t.dtype));
        say_lengths(&s);
        say_tokens(&s, &t);
        if (svg && (st = stat_tokens_svg(&s, path, svg, e)) == OK)
            say("plot          %s", svg);
        stat_tokens_free(&s);
    }
    tokens_close(&t);
    return st;
}
