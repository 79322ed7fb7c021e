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
      1 },
    { "llama3", LETTERS "\\p{N}{1,3}" OTHERS, 0 },
    { "qwen2", LETTERS "\\p{N}" OTHERS, 0 },
};

struct pieces {
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
    p->match = pcre2_match_data_create(1, NULL);
    *out = p;
    return OK;
}

int pieces_next(void *self, const char *text, size_t at, size_t n, uint32_t *ends, int room)
{
    struct pieces *p = self;
    const size_t *span = pcre2_get_ovector_pointer(p->match);
    int k = 0;

    while (at < n && k < room) {
        int found =
            pcre2_match(p->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, p->match, NULL);

        if (found != 1 || span[0] != at || span[1] == at)
            die(E_BUG, "PCRE2 finds no piece at %zu of a text (%d)", at, found);
        at = span[1];
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
