#include "convert/batches.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "convert/byte_source.h"
#include "convert/jsonl.h"
#include "text/utf8.h"

enum { BATCH = 1 << 18, KEPT = 4 * BATCH };

struct batches {
    struct batches_of of;
    struct byte_source *source; /* of the input at place.input, NULL: not open */
    struct place place;
    int64_t number, done; /* done: bytes of earlier inputs */
    char *rest;           /* [nrest] read, behind the last batch */
    size_t nrest, room;
    int at_end;
    uint64_t whole[2];
};

struct batches *batches_open(const struct batches_of *of, const struct place *from)
{
    struct batches *s = mem_take(sizeof *s);

    s->of = *of;
    s->place = *from;
    for (int64_t i = 0; i < from->input; i++)
        s->done += of->list->at[i].size;
    return s;
}

void batches_close(struct batches *s)
{
    if (!s)
        return;
    byte_source_close(s->source);
    mem_give(s->rest);
    mem_give(s);
}

void batch_room(struct batch *b, size_t n)
{
    size_t room = b->room ? b->room : BATCH;

    while (room < n)
        room *= 2;
    if (room > b->room) {
        b->text = mem_grow(b->text, b->room, room);
        b->room = room;
    }
}

void batch_free(struct batch *b)
{
    mem_give(b->text);
    *b = (struct batch){ .text = NULL };
}

static void batch_empty(struct batch *b)
{
    if (b->room > KEPT)
        batch_free(b);
    b->h = (struct batch_head){ 0 };
}

/* ---- the hash of a text that comes in parts, over all of it beforehand ---- */

static enum status hash_rest(struct batches *s, struct byte_source *from, struct hash_stream *h,
                             struct err *e)
{
    char *text = mem_take(BATCH), *good = mem_take(3 * BATCH);
    size_t n = 0, got = 1;
    int64_t count = 0;
    enum status st = OK;

    while (st == OK && got) {
        size_t k;

        st = byte_source_read(from, text + n, BATCH - n, &got, e);
        n += got;
        k = got ? utf8_whole(text, n) : n;
        if (s->of.replace)
            hash_add(h, good, utf8_replace(good, text, k, &count));
        else
            hash_add(h, text, k);
        memmove(text, text + k, n - k);
        n -= k;
    }
    mem_give(text);
    mem_give(good);
    return st;
}

static enum status hash_whole(struct batches *s, struct err *e)
{
    struct hash_stream *h;
    struct byte_source *from;
    enum status st = byte_source_open(&from, s->of.list->at[s->place.input].path, e);

    if (st != OK)
        return st;
    h = hash_open();
    st = hash_rest(s, from, h, e);
    hash_close_pair(h, s->whole);
    byte_source_close(from);
    return st;
}

/* ---- one input ---- */

static enum status open_input(struct batches *s, struct err *e)
{
    const struct input *in = &s->of.list->at[s->place.input];
    enum status st = byte_source_open(&s->source, in->path, e);

    s->at_end = 0;
    s->nrest = 0;
    if (st == OK && s->place.at)
        st = byte_source_skip(s->source, s->place.at, e);
    if (st == OK && s->place.inside && s->of.whole)
        st = hash_whole(s, e);
    return st;
}

static void close_input(struct batches *s)
{
    byte_source_close(s->source);
    s->source = NULL;
    s->done += s->of.list->at[s->place.input].size;
    s->place = (struct place){ .input = s->place.input + 1 };
}

/* Bytes of the batch that go now, 0: none yet; those up to `seen` were looked at before. */
static size_t cut(const struct batches *s, const struct batch *b, size_t n, size_t seen)
{
    const char *newline;

    if (s->at_end)
        return n;
    if (b->h.format == INPUT_TEXT)
        return s->of.t ? tokenizer_cut(s->of.t, b->text, n, seen > 8 ? seen - 8 : 0)
                       : utf8_whole(b->text, n - 1);
    newline = memrchr(b->text + seen, '\n', n - seen);
    return newline ? (size_t)(newline + 1 - b->text) : 0;
}

static enum status too_long(const struct batches *s, const struct batch *b, struct err *e)
{
    const char *path = byte_source_path(s->source);

    if (b->h.format != INPUT_TEXT)
        return jsonl_too_long(path, s->place.lines + 1, e);
    return err_set(e, E_FILE,
                   "%s: behind byte %lld there are %zu MiB without a place where this tokenizer "
                   "surely begins a new token, and they must fit in memory; split the text",
                   path, (long long)s->place.at, JSONL_LINE_MAX >> 20);
}

/* What was read goes on with what is not taken. */
static void keep_rest(struct batches *s, const struct batch *b, size_t from, size_t n)
{
    s->nrest = n - from;
    if (s->nrest > s->room) {
        mem_give(s->rest);
        s->room = 2 * s->nrest;
        s->rest = mem_take(s->room);
    }
    if (s->nrest)
        memcpy(s->rest, b->text + from, s->nrest);
}

/* Reads until there is something to hand out. */
static enum status read_batch(struct batches *s, struct batch *b, struct err *e)
{
    size_t n = s->nrest, want = BATCH, seen = 0, got, taken = 0;
    enum status st = OK;

    batch_room(b, n + BATCH);
    if (n)
        memcpy(b->text, s->rest, n);
    for (;;) {
        batch_room(b, n > want ? n : want);
        if (n < want) {
            st = byte_source_read(s->source, b->text + n, want - n, &got, e);
            s->at_end |= got < want - n;
            n += got;
        }
        if (st != OK || (taken = cut(s, b, n, seen)) > 0 || s->at_end)
            break;
        if (n >= JSONL_LINE_MAX)
            return too_long(s, b, e);
        seen = n;
        want = 2 * n > BATCH ? 2 * n : BATCH;
    }
    if (st == OK)
        keep_rest(s, b, taken, n);
    b->h.n = (int64_t)taken;
    return st;
}

static int64_t newlines(const char *p, int64_t n)
{
    int64_t count = 0;

    for (const char *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        count++;
    return count;
}

static enum status take_text(struct batches *s, struct batch *b, struct err *e)
{
    enum status st = OK;

    b->h.first = !s->place.inside;
    b->h.last = s->at_end && s->nrest == 0;
    if (b->h.n == 0 && s->place.at) /* a run that was ended had all of it */
        return OK;
    if (b->h.n == 0)
        return err_set(e, E_FILE, "%s: empty; make it again", byte_source_path(s->source));
    if (b->h.first && !b->h.last && s->of.whole)
        st = hash_whole(s, e);
    s->place.inside = !b->h.last;
    memcpy(b->whole, s->whole, sizeof b->whole);
    return st;
}

/* h.n 0: the input has no more. */
static enum status next_of_input(struct batches *s, struct batch *b, struct err *e)
{
    enum status st = OK;

    batch_empty(b);
    b->input = s->place.input;
    b->h.format = s->of.list->at[b->input].format;
    b->h.at = s->place.at;
    b->h.lines = s->place.lines;
    if (!s->source)
        st = open_input(s, e);
    else if (s->at_end && s->nrest == 0)
        return OK;
    if (st == OK)
        st = read_batch(s, b, e);
    if (st == OK && b->h.format == INPUT_TEXT)
        st = take_text(s, b, e);
    if (st != OK)
        return st;
    b->done = s->done + byte_source_done(s->source);
    s->place.at += b->h.n;
    if (b->h.format != INPUT_TEXT)
        s->place.lines += newlines(b->text, b->h.n);
    return OK;
}

enum status batches_next(struct batches *s, struct batch *b, int *more, struct err *e)
{
    enum status st = OK;

    *more = 0;
    while (s->place.input < s->of.list->n) {
        st = next_of_input(s, b, e);
        if (st != OK || b->h.n)
            break;
        close_input(s);
    }
    if (st != OK || s->place.input == s->of.list->n)
        return st;
    b->h.number = s->number++;
    b->after = s->place;
    *more = 1;
    return OK;
}
