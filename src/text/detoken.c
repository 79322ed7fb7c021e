#include "text/detoken.h"

#include <string.h>

#include "text/split.h"
#include "text/unicode.h"
#include "text/utf8.h"

struct walk {
    const struct detoken *d;
    struct detoken_state *s;
    struct buffer *out;
    struct err *e;
};

static enum status push(const struct walk *w, int i, const char *p, size_t n, int added);

static enum status add_join(const struct walk *w, int i, const char *p, size_t n, int added)
{
    enum status st = w->s->count[i]++ ? push(w, i + 1, " ", 1, added) : OK;

    return st == OK ? push(w, i + 1, p, n, added) : st;
}

/* A token with a character outside the alphabet is its own text. */
static enum status add_bytes(const struct walk *w, int i, const char *p, size_t n, int added)
{
    struct buffer *b = &w->s->work[i];

    b->n = 0;
    for (size_t at = 0; at < n && !added;) {
        uint32_t c;
        int byte;
        char one;

        at += (size_t)unicode_at(p + at, &c);
        added = (byte = split_character_byte(c)) < 0;
        one = (char)byte;
        buffer_add(b, &one, 1);
    }
    return added ? push(w, i + 1, p, n, added) : push(w, i + 1, b->at, b->n, added);
}

static enum status add_replace(const struct walk *w, int i, const char *p, size_t n, int added)
{
    const struct detoken_step *t = &w->d->step[i];
    struct pattern_search f = { .p = &t->pattern, .s = w->s->scratch, .text = p, .n = n };
    struct buffer *b = &w->s->work[i];
    size_t done = 0;
    int found = 0;

    b->n = 0;
    while (n && (found = pattern_next(&f, w->e)) > 0) {
        buffer_add(b, p + done, f.from - done);
        buffer_add(b, t->text, t->n);
        done = f.to;
    }
    buffer_add(b, p + done, n - done);
    return found < 0 ? E_RESOURCE : push(w, i + 1, b->at, b->n, added);
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *p = c ? strchr(digits, c | 0x20) : NULL;

    return p && !(c < '0') ? (int)(p - digits) : -1;
}

/* Bytes that waited for the end of their run. */
static enum status give_run(const struct walk *w, int i)
{
    struct buffer *b = &w->s->held[i];
    struct utf8_check u = { 0 };
    size_t n = b->n;
    enum status st = OK;

    b->n = 0;
    if (n == 0)
        return OK;
    if (utf8_check_add(&u, b->at, n) == 0 && !utf8_check_end(&u))
        return push(w, i + 1, b->at, n, 0);
    for (size_t k = 0; k < n && st == OK; k++)
        st = push(w, i + 1, "\xef\xbf\xbd", 3, 0);
    return st;
}

static enum status add_fallback(const struct walk *w, int i, const char *p, size_t n, int added)
{
    enum status st;

    if (n == 6 && memcmp(p, "<0x", 3) == 0 && p[5] == '>' && hex_digit(p[3]) >= 0 &&
        hex_digit(p[4]) >= 0) {
        char byte = (char)(hex_digit(p[3]) * 16 + hex_digit(p[4]));

        buffer_add(&w->s->held[i], &byte, 1);
        return OK;
    }
    st = give_run(w, i);
    return st == OK ? push(w, i + 1, p, n, added) : st;
}

/* One token of its own. */
static enum status strip_token(const struct walk *w, int i, const char *p, size_t n, int added)
{
    const struct detoken_step *t = &w->d->step[i];
    size_t from = 0, to = n;

    for (int64_t k = 0; k < t->start && to - from >= t->n && memcmp(p + from, t->text, t->n) == 0;
         k++)
        from += t->n;
    for (int64_t k = 0;
         k < t->stop && to - from >= t->n && memcmp(p + to - t->n, t->text, t->n) == 0; k++)
        to -= t->n;
    return push(w, i + 1, p + from, to - from, added);
}

/* A piece of one long token: what may be its end is held back. A character may come in two pieces
 * only if it is not the one that is stripped: tokens hold whole ones of that. */
static enum status strip_stream(const struct walk *w, int i, const char *p, size_t n, int added)
{
    const struct detoken_step *t = &w->d->step[i];
    int64_t *held = &w->s->count[i], *cut = &w->s->cut[i]; /* cut -1: the start is over */
    enum status st = OK;

    for (size_t at = 0; at < n && st == OK;) {
        size_t k = t->n;
        int is = n - at >= k && memcmp(p + at, t->text, k) == 0;

        if (!is && *cut >= 0)
            *cut = -1;
        if (is && *cut >= 0 && *cut < t->start) {
            ++*cut;
        } else if (is && *held < t->stop) {
            ++*held;
        } else {
            for (k = at; k < n && (k == at || n - k < t->n || memcmp(p + k, t->text, t->n)); k++)
                ;
            k -= at;
            for (; !is && *held > 0 && st == OK; --*held)
                st = push(w, i + 1, t->text, t->n, added);
            if (st == OK)
                st = push(w, i + 1, p + at, is ? t->n : k, added);
            k = is ? t->n : k;
        }
        at += k;
    }
    return st;
}

static enum status add_strip(const struct walk *w, int i, const char *p, size_t n, int added)
{
    return (w->d->step[i].fused ? strip_stream : strip_token)(w, i, p, n, added);
}

static enum status add_spaces(const struct walk *w, int i, const char *p, size_t n, int added)
{
    const struct detoken_step *t = &w->d->step[i];
    struct buffer *b = &w->s->work[i];
    int keep = w->s->count[i]++ || t->keep;

    b->n = 0;
    for (size_t at = 0; at < n;) {
        size_t k = (size_t)unicode_length(p[at]);

        if (k == t->n && memcmp(p + at, t->text, k) == 0) {
            if (keep)
                buffer_add(b, " ", 1);
        } else {
            buffer_add(b, p + at, k);
        }
        at += k;
    }
    return push(w, i + 1, b->at, b->n, added);
}

static enum status add_fuse(const struct walk *w, int i, const char *p, size_t n, int added)
{
    return push(w, i + 1, p, n, added);
}

static enum status push(const struct walk *w, int i, const char *p, size_t n, int added)
{
    static enum status (*const kinds[])(const struct walk *, int, const char *, size_t, int) = {
        [DETOKEN_JOIN] = add_join,       [DETOKEN_BYTES] = add_bytes,
        [DETOKEN_REPLACE] = add_replace, [DETOKEN_FALLBACK] = add_fallback,
        [DETOKEN_FUSE] = add_fuse,       [DETOKEN_STRIP] = add_strip,
        [DETOKEN_SPACES] = add_spaces,
    };

    if (i < w->d->n)
        return kinds[w->d->step[i].kind](w, i, p, n, added);
    buffer_add(w->out, p, n);
    return OK;
}

enum status detoken_add(const struct detoken *d, struct detoken_state *s, const char *token,
                        size_t n, int added, struct buffer *out, struct err *e)
{
    struct walk w = { d, s, out, e };

    return push(&w, 0, token, n, added);
}

enum status detoken_end(const struct detoken *d, struct detoken_state *s, struct buffer *out,
                        struct err *e)
{
    struct walk w = { d, s, out, e };
    enum status st = OK;

    for (int i = 0; i < d->n && st == OK; i++) {
        if (d->step[i].kind == DETOKEN_FALLBACK)
            st = give_run(&w, i);
        s->count[i] = s->cut[i] = 0;
    }
    return st;
}

void detoken_state_free(struct detoken_state *s)
{
    for (int i = 0; i < DETOKEN_STEPS; i++) {
        buffer_free(&s->held[i]);
        buffer_free(&s->work[i]);
    }
    pattern_scratch_close(s->scratch);
}
