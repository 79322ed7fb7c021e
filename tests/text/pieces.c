/* The pieces that are cut by hand are those of the regular expression, on texts of the characters
 * that it tells apart. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pieces.h"

#include <pcre2.h>

#include "tests/tap.h"

enum { TEXT = 64, PAD = 16 };

/* Not U+180E, which the library does not count as white space and PCRE2 does. */
static const char *const characters[] = {
    "'",        "s",
    "t",        "r",
    "e",        "v",
    "m",        "l",
    "d",        "S",
    "T",        "D",
    "a",        "Z",
    " ",        " ",
    "\n",       "\r",
    "\t",       "\v",
    "1",        "2",
    "9",        ".",
    "!",        "-",
    "\x1c",     "\xc3\xa9",
    "_",        "\"",
    "\xc2\xa0", "\xc2\x85",
    "\xc5\xbf", "\xe3\x80\x80",
    "\xd9\xa1", "\xe6\x97\xa5",
};

static uint32_t below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % n);
}

static size_t make(uint64_t *state, char text[TEXT + PAD])
{
    uint32_t length = 1 + below(state, 12), kinds = below(state, 2) ? 22 : COUNT_OF(characters);
    size_t n = 0;

    memset(text, 0, TEXT + PAD);
    while (length-- > 0) {
        const char *c = characters[below(state, kinds)];

        memcpy(text + n, c, strlen(c));
        n += strlen(c);
    }
    return n;
}

static int same(struct pieces *p, pcre2_code *code, pcre2_match_data *match, const char *text,
                size_t n, int room)
{
    const size_t *span = pcre2_get_ovector_pointer(match);
    uint32_t ends[TEXT];
    size_t at = 0;

    while (at < n) {
        int k = pieces_next(p, text, at, n, ends, room);

        if (k < 1 || k > room)
            return 0;
        for (int i = 0; i < k; i++) {
            if (pcre2_match(code, (PCRE2_SPTR)text, n, at, 0, match, NULL) != 1 || span[0] != at ||
                span[1] != ends[i])
                return 0;
            at = span[1];
        }
    }
    return at == n;
}

static void show(const char *text, size_t n)
{
    printf("#");
    for (size_t i = 0; i < n; i++)
        printf(" %02x", (unsigned char)text[i]);
    printf("\n");
}

int main(void)
{
    static const char *const names[] = { "gpt2", "llama3", "qwen2" };
    int trials = tap_soak() ? 5000000 : 150000;

    tap_plan(COUNT_OF(names));
    for (int i = 0; i < COUNT_OF(names); i++) {
        const struct pieces_pattern *pattern = pieces_find(names[i]);
        struct pieces *p;
        uint64_t state = 1;
        int code_error, bad = 0;
        size_t where;
        pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern->regex, PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP, &code_error, &where, NULL);
        pcre2_match_data *match = pcre2_match_data_create(1, NULL);

        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
        if (pieces_open(&p, pattern, NULL) != OK)
            return 1;
        for (int k = 0; k < trials && bad < 5; k++) {
            char text[TEXT + PAD];
            size_t n = make(&state, text);

            if (!same(p, code, match, text, n, k % 3 ? TEXT : 1)) {
                bad++;
                show(text, n);
            }
        }
        tap_ok(bad == 0, "%s: %d texts", names[i], trials);
        pieces_close(p);
        pcre2_match_data_free(match);
        pcre2_code_free(code);
    }
    return tap_done();
}
