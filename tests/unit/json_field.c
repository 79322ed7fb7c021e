/* A field of a JSON line found without a tree: what it finds, jansson finds; common lines it finds.
 */
#include "convert/json_field.h"

#include <string.h>

#include "convert/jsonl.h"
#include "tests/tap.h"
#include "text/utf8.h"

static const char *const seeds[] = {
    "{\"text\":\"plain words\"}",
    "{ \"id\" : 17 , \"text\" : \"a\\n\\\"b\\\" \\u00e9\\ud83d\\ude00 \\\\ \\/\" , \"x\":null}\r",
    "{\"meta\":{\"text\":\"no\",\"a\":[1,-2.5e-3,{\"b\":true,\"c\":[]},\"\\u0000\"],\"d\":{}},"
    "\"text\":\"\"}",
    "{\"a\":0,\"b\":-0.0,\"c\":12345678901234567,\"d\":1E+5,\"e\":false,\"text\":"
    "\"\xc3\xa4\xe4\xb8\xad\\t\"}",
    "\t{\"\":\"\",\"te\":\"x\",\"texts\":[[[[\"deep\"]]]],\"text\":\"end\"} \t",
};
static const char *const pieces[] = {
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\\u",
    "\\ud83d",
    "\\udc00",
    "\\u0000",
    "\\x",
    "1",
    "01",
    "-",
    ".",
    "e",
    "1e999",
    "1e-999",
    "9999999999999999999",
    "null",
    "nul",
    "true",
    "\"text\":",
    "\"text\":\"y\",",
    "\"a\":1,",
    "\x01",
    "\x7f",
    "\xef\xbb\xbf",
    "\xc3\xa9",
    "\\u00E9",
    "\\b",
    "0.",
    "{}",
    "[]",
    "\"\"",
};

static struct buffer room;

/* 1: found and right; 0: left to jansson; -1: wrong. */
static int try_line(const char *line, size_t n)
{
    struct jsonl_line at = { "", "text", 1 };
    struct err e = { "" };
    const char *text, *want;
    size_t bytes, want_bytes;
    json_t *value = NULL;
    int good;

    if (!json_field(line, n, "text", &room, &text, &bytes))
        return 0;
    good = jsonl_parse(&value, &at, line, n, &e) == OK &&
           jsonl_field(value, &at, &want, &want_bytes, &e) == OK && want_bytes == bytes &&
           memcmp(want, text, bytes) == 0;
    if (!good)
        printf("# %.*s: %s\n", (int)n, line, e.text);
    json_decref(value);
    return good ? 1 : -1;
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* A piece is put in, or put over what was there, or some bytes are taken out. */
static size_t change(char *line, size_t n, uint64_t *state)
{
    const char *p = pieces[draw(state, COUNT_OF(pieces))];
    size_t k = strlen(p), at = draw(state, (uint32_t)n + 1);
    uint32_t how = draw(state, 3);

    if (how == 0 && n + k < 1000) {
        memmove(line + at + k, line + at, n - at);
        memcpy(line + at, p, k);
        return n + k;
    }
    if (how == 1 && at + k <= n) {
        memcpy(line + at, p, k);
        return n;
    }
    k = 1 + draw(state, 3);
    if (at + k > n)
        return n;
    memmove(line + at, line + at + k, n - at - k);
    return n - k;
}

static void test_changed(int rounds)
{
    uint64_t state = 1;
    int wrong = 0, found = 0;

    for (int i = 0; i < rounds; i++) {
        char line[1100];
        const char *seed = seeds[i % COUNT_OF(seeds)];
        size_t n = strlen(seed);
        struct utf8_check u = { 0 };
        int is;

        memcpy(line, seed, n);
        for (uint32_t k = 1 + draw(&state, 3); k > 0; k--)
            n = change(line, n, &state);
        if (utf8_check_add(&u, line, n) || utf8_check_end(&u))
            continue;
        is = try_line(line, n);
        wrong += is < 0;
        found += is > 0;
    }
    printf("# %d of %d changed lines were found\n", found, rounds);
    tap_ok(wrong == 0 && found > rounds / 20, "changed lines: found is what jansson finds");
}

int main(void)
{
    char line[3000] = "{";

    tap_plan(COUNT_OF(seeds) + 6);
    for (int i = 0; i < COUNT_OF(seeds); i++)
        tap_ok(try_line(seeds[i], strlen(seeds[i])) == 1, "common line %d is found", i);
    tap_ok(try_line("{\"text\":\"a\",\"text\":\"b\"}", 23) == 0, "a field twice is left");
    tap_ok(try_line("{\"te\\u0078t\":\"a\"}", 16) == 0, "a key with an escape is left");
    tap_ok(try_line("{\"text\":\"a\"}{", 13) == 0, "something behind it is left");
    for (int i = 0; i < 100; i++)
        strcat(line, "[");
    tap_ok(try_line(line, strlen(line)) == 0, "too deep is left");
    for (size_t k = 0; k < 40; k++) {
        char text[64];
        int n = snprintf(text, sizeof text, "{\"text\":\"%.*s\\n\"}", (int)k,
                         "0123456789012345678901234567890123456789");

        if (try_line(text, (size_t)n) != 1)
            break;
        if (k == 39)
            tap_ok(1, "escapes at every place");
    }
    test_changed(tap_soak() ? 20000000 : 300000);
    buffer_free(&room);
    return tap_done();
}
