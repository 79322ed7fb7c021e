#include "text/tokenizer_impl.h"
#include "text/unicode.h"
#include "text/utf8.h"

enum { AT_SPACES = 1, AT_LINES = 2 };

static int is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* No added token of these can reach a cut or end at it. lines: a cut behind a newline. */
static int tokens_keep_off(const struct finder *f, int lines)
{
    for (int i = 0; i < f->n; i++) {
        const struct finder_entry *t = &f->entry[i];

        if (t->n == 0 || is_letter(t->text[0]) || is_letter(t->text[t->n - 1]) ||
            (lines && memchr(t->text, '\n', t->n)))
            return 0;
    }
    return !f->swallows;
}

int tokenizer_cuts(const struct tokenizer *t)
{
    int spaces = t->cuttable && tokens_keep_off(&t->raw, 0) && tokens_keep_off(&t->normalised, 0);
    int lines = t->scan != SCAN_NONE && tokens_keep_off(&t->raw, 1) &&
                tokens_keep_off(&t->normalised, 1) && normalise_keeps_lines(&t->normaliser);

    return (spaces ? AT_SPACES : 0) | (lines ? AT_LINES : 0);
}

/* A whole character begins at `at` and is no space. */
static int is_solid(const struct tokenizer *t, const char *text, size_t n, size_t at)
{
    struct utf8_check u = { 0 };
    size_t k = (size_t)unicode_length(text[at]);
    uint32_t c;

    if (k > n - at || utf8_check_add(&u, text + at, k) || utf8_check_end(&u))
        return 0;
    unicode_at(text + at, &c);
    return !(t->classes[c] & UNICODE_SPACE);
}

/* A newline between two that are no spaces: none of the expressions' matches goes over its end, and
 * spaces before the cut are what they would be within the text. */
static int is_line(const struct tokenizer *t, const char *text, size_t n, size_t at)
{
    return at >= 2 && text[at - 1] == '\n' && is_solid(t, text, n, at) &&
           is_solid(t, text, at - 1, unicode_before(text, at - 1));
}

size_t tokenizer_cut(const struct tokenizer *t, const char *text, size_t n, size_t from)
{
    if (!t->cuts)
        return 0;
    for (size_t at = n - 1; n > 1 && at > from && at > 0; at--)
        if ((t->cuts & AT_SPACES && text[at] == ' ' && at + 1 < n && is_letter(text[at - 1]) &&
             is_letter(text[at + 1])) ||
            (t->cuts & AT_LINES && is_line(t, text, n, at)))
            return at;
    return 0;
}
