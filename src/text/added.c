#include "text/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "text/unicode.h"

void finder_begin(struct finder *f, int room)
{
    *f = (struct finder){ 0 };
    f->entry = mem_take((size_t)(room + 1) * sizeof *f->entry);
}

void finder_add(struct finder *f, const struct added_token *t, const char *text, size_t n)
{
    f->entry[f->n++] = (struct finder_entry){ text, n, t };
    f->swallows |= t->left || t->right || memchr(text, ' ', n) != NULL;
}

static int by_text(const void *a, const void *b)
{
    const struct finder_entry *x = a, *y = b;
    int c = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);

    return c ? c : (x->n > y->n) - (x->n < y->n);
}

const struct added_token *finder_end(struct finder *f)
{
    qsort(f->entry, (size_t)f->n, sizeof *f->entry, by_text);
    for (int i = 0; i < f->n; i++) {
        unsigned char c = (unsigned char)f->entry[i].text[0];

        if (!f->first[c] && f->nfirsts++ < 3)
            f->firsts[f->nfirsts - 1] = c;
        f->first[c] = 1;
        f->from[c + 1]++;
        if (i && by_text(&f->entry[i - 1], &f->entry[i]) == 0)
            return f->entry[i].token;
    }
    for (int c = 0; c < 256; c++)
        f->from[c + 1] += f->from[c];
    return NULL;
}

void finder_free(struct finder *f)
{
    mem_give(f->entry);
}

/* The longest token at p, or NULL: narrows the sorted list byte by byte. */
static const struct finder_entry *longest_at(const struct finder *f, const char *p, size_t n)
{
    const struct finder_entry *best = NULL;
    int lo = f->from[(unsigned char)p[0]], hi = f->from[(unsigned char)p[0] + 1];

    for (size_t k = 1; lo < hi; k++) {
        int a = lo, b = hi;

        if (f->entry[lo].n == k)
            best = &f->entry[lo++];
        if (k == n)
            break;
        for (a = lo, b = hi; a < b;) { /* first with a byte >= p[k] */
            int mid = (a + b) / 2;

            if ((unsigned char)f->entry[mid].text[k] < (unsigned char)p[k])
                a = mid + 1;
            else
                b = mid;
        }
        lo = a;
        for (b = hi; a < b;) { /* first with a byte > p[k] */
            int mid = (a + b) / 2;

            if ((unsigned char)f->entry[mid].text[k] <= (unsigned char)p[k])
                a = mid + 1;
            else
                b = mid;
        }
        hi = a;
    }
    return best;
}

/* The next place where a token may begin. */
static size_t candidate(const struct finder *f, const char *text, size_t n, size_t at)
{
    const char *p;

    if (f->nfirsts == 1) {
        p = memchr(text + at, f->firsts[0], n - at);
        return p ? (size_t)(p - text) : n;
    }
    while (at < n && !f->first[(unsigned char)text[at]])
        at++;
    return at;
}

static int is_word(const struct finding *g, size_t at)
{
    uint32_t c;

    unicode_at(g->text + at, &c);
    return g->classes[c] & UNICODE_WORD;
}

static int stands_alone(const struct finding *g, size_t from, size_t to)
{
    return (from == 0 || !is_word(g, unicode_before(g->text, from))) &&
           (to == g->n || !is_word(g, to));
}

static void take_spaces(struct finding *g)
{
    uint32_t c;

    while (g->token->left && g->from > 0) {
        size_t before = unicode_before(g->text, g->from);

        unicode_at(g->text + before, &c);
        if (!(g->classes[c] & UNICODE_SPACE))
            break;
        g->from = before;
    }
    if (g->token->left && g->from < g->done)
        g->from = g->done; /* taken already */
    while (g->token->right && g->to < g->n) {
        size_t k = (size_t)unicode_at(g->text + g->to, &c);

        if (!(g->classes[c] & UNICODE_SPACE))
            break;
        g->to += k;
    }
}

int finder_next(struct finding *g)
{
    const struct finder_entry *found;

    if (g->f->n == 0)
        return 0;
    while ((g->at = candidate(g->f, g->text, g->n, g->at)) < g->n) {
        found = longest_at(g->f, g->text + g->at, g->n - g->at);
        if (!found) {
            g->at++;
            continue;
        }
        g->from = g->at;
        g->to = g->at += found->n;
        if (found->token->single_word && !stands_alone(g, g->from, g->to))
            continue;
        g->token = found->token;
        take_spaces(g);
        return 1;
    }
    return 0;
}
