#include "text/pieces.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

/* Contractions in any case; one sign, at most, goes with the letters behind it. */
#define LETTERS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define OTHERS  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct pieces_pattern patterns[] = {
    { "gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
      1, 0 },
    { "llama3", LETTERS "\\p{N}{1,3}" OTHERS, 0, 3 },
    { "qwen2", LETTERS "\\p{N}" OTHERS, 0, 1 },
};

struct pieces {
    const struct pieces_pattern *pattern;
    pcre2_code *code;
    pcre2_match_data *match;
};

const struct pieces_pattern *pieces_find(const char *name)
{
    for (int i = 0; i < COUNT_OF(patterns); i++)
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
    return NULL;
}

/* The library's engine does not count U+180E as white space, PCRE2 does: \s and \S are spelt out.
 */
static void spell_out(const char *regex, char *out, size_t room)
{
    const char *space = "\\p{Z}\\t-\\r\\x{85}";
    size_t n = 0;
    int in_class = 0;

    for (const char *r = regex; *r; r++) {
        int is_space = r[0] == '\\' && (r[1] == 's' || r[1] == 'S');

        BUG_IF(n + 32 > room || (in_class && is_space && r[1] == 'S'));
        if (*r == '[' || *r == ']')
            in_class = *r == '[';
        if (is_space)
            n += (size_t)snprintf(out + n, room - n, in_class ? "%s%s" : "[%s%s]",
                                  r[1] == 'S' ? "^" : "", space);
        else
            out[n++] = *r;
        r += is_space;
    }
    out[n] = '\0';
}

enum status pieces_open(struct pieces **out, const struct pieces_pattern *pattern, struct err *e)
{
    struct pieces *p = mem_take(sizeof *p);
    int code = 0;
    size_t at = 0;
    char regex[1024];

    spell_out(pattern->regex, regex, sizeof regex);
    p->code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &code, &at, NULL);
    if (!p->code) {
        mem_give(p);
        return err_set(e, E_RESOURCE, "PCRE2 refuses the pattern %s at %zu (error %d)",
                       pattern->name, at, code);
    }
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without it, slower */
    p->pattern = pattern;
    p->match = pcre2_match_data_create(1, NULL);
    *out = p;
    return OK;
}

/* ---- ASCII by hand ---- */

enum { OTHER, LETTER, DIGIT, SPACE, FOREIGN }; /* FOREIGN: not ASCII, PCRE2 decides */

static const unsigned char classes[256] = {
    ['\t' ... '\r'] = SPACE, [' '] = SPACE,          ['0' ... '9'] = DIGIT,
    ['A' ... 'Z'] = LETTER,  ['a' ... 'z'] = LETTER, [0x80 ... 0xff] = FOREIGN,
};

/* s[0, n), a text's rest. The functions return the end of the first piece, 0 where PCRE2 must
 * decide. */
struct rest {
    const unsigned char *s;
    size_t n;
};

static inline int class_at(struct rest r, size_t i)
{
    return i < r.n ? classes[r.s[i]] : -1;
}

/* Behind the run of one class that begins at i. */
static inline size_t run(struct rest r, size_t i, int class, size_t most)
{
    size_t end = r.n - i < most ? r.n : i + most;

    while (i < end && classes[r.s[i]] == class)
        i++;
    return i < end && classes[r.s[i]] == FOREIGN ? 0 : i;
}

static inline int is_newline(unsigned char c)
{
    return c == '\r' || c == '\n';
}

/* 's, 't, 're, 've, 'm, 'll, 'd: its length, 0: none. lower: the bit that makes a letter small. */
static inline size_t contraction(struct rest r, unsigned char lower)
{
    unsigned char a, b;

    if (r.n < 2 || r.s[0] != '\'')
        return 0;
    a = r.s[1] | lower;
    b = r.n > 2 ? r.s[2] | lower : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* White space: up to its last newline if `lines`, else all but what goes with the next piece. */
static size_t white(struct rest r, int lines)
{
    size_t end = run(r, 0, SPACE, SIZE_MAX), k = end;

    if (end == 0)
        return 0;
    while (lines && k > 0 && !is_newline(r.s[k - 1]))
        k--;
    if (lines && k > 0)
        return k;
    return end == r.n || end == 1 ? end : end - 1;
}

static inline size_t gpt2(struct rest r)
{
    size_t k = contraction(r, 0), i = r.s[0] == ' ';
    int class = class_at(r, i);

    if (k)
        return k;
    if (class == FOREIGN)
        return 0;
    if (class == SPACE || class < 0)
        return white(r, 0);
    return i == 0 && classes[r.s[0]] == SPACE ? white(r, 0) : run(r, i, class, SIZE_MAX);
}

static inline size_t llama3(struct rest r, int digits)
{
    int first = classes[r.s[0]], second = class_at(r, 1);
    size_t k = contraction(r, 0x20);

    if (k)
        return k;
    if (first == FOREIGN)
        return 0;
    if (first == LETTER)
        return run(r, 0, LETTER, SIZE_MAX);
    if (first == DIGIT)
        return run(r, 0, DIGIT, (size_t)digits);
    if (second == FOREIGN)
        return 0;
    if (second == LETTER && !is_newline(r.s[0]))
        return run(r, 1, LETTER, SIZE_MAX);
    if (first == SPACE && !(r.s[0] == ' ' && second == OTHER))
        return white(r, 1);
    k = run(r, first == SPACE, OTHER, SIZE_MAX);
    while (k > 0 && k < r.n && is_newline(r.s[k]))
        k++;
    return k;
}

static size_t by_regex(struct pieces *p, const char *text, size_t at, size_t n)
{
    const size_t *span = pcre2_get_ovector_pointer(p->match);
    int found = pcre2_match(p->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, p->match, NULL);

    if (found != 1 || span[0] != at || span[1] == at)
        die(E_BUG, "PCRE2 finds no piece at %zu of a text (%d)", at, found);
    return span[1];
}

int pieces_next(void *self, const char *text, size_t at, size_t n, uint32_t *ends, int room)
{
    struct pieces *p = self;
    int is_gpt2 = p->pattern->is_byte_level, digits = p->pattern->digits, k = 0;

    while (at < n && k < room) {
        struct rest r = { (const unsigned char *)text + at, n - at };
        size_t length = is_gpt2 ? gpt2(r) : llama3(r, digits);

        at = length ? at + length : by_regex(p, text, at, n);
        ends[k++] = (uint32_t)at;
    }
    return k;
}

void pieces_close(struct pieces *p)
{
    if (!p)
        return;
    pcre2_match_data_free(p->match);
    pcre2_code_free(p->code);
    mem_give(p);
}
