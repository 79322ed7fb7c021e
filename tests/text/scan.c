/* The scanners find the pieces that the regular expressions find, on every instruction set. */
#include "text/scan.h"

#include "tests/tap.h"
#include "text/buffer.h"
#include "text/pattern.h"
#include "text/unicode.h"

static const struct {
    const char *name;
    scan_classify *classify;
} isas[] = { { "baseline", scan_classify_baseline },
             { "avx2", scan_classify_avx2 },
             { "avx512", scan_classify_avx512 } };

/* What texts are made of, with weights by repetition. */
static const char *const parts[] = {
    "a",
    "b",
    "hello",
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\n",
    "\r\n",
    "\t",
    "1",
    "23",
    "4567",
    ".",
    ",",
    "(",
    "--",
    "'",
    "'s",
    "'t",
    "'ll",
    "'RE",
    "'Ve",
    "'d",
    "'m",
    "'\xc5\xbf",
    "''",
    "\"",
    "\xc2\xa0",
    "\xe3\x80\x80",
    "\xe2\x80\x83",
    "\xc2\x85",
    "\xe1\xa0\x8e",
    "\xe2\x80\x94",
    "\xe2\x80\x9c",
    "\xc3\xa9",
    "\xd0\x9f\xd1\x80",
    "\xe6\x97\xa5\xe6\x9c\xac",
    "\xd9\xa3",
    "\xe2\x85\xa7",
    "\xc2\xb2",
    "\xf0\x9f\x98\x80",
    "\xf0\x9d\x9f\x8e",
    "\xcc\x81",
    "\xf0\x9d\x90\x80",
    "x",
    "Y",
    "_",
    "0",
};

static uint64_t state = 1;

static uint32_t any(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void make(struct buffer *b, size_t about)
{
    b->n = 0;
    while (b->n < about) {
        const char *p = parts[any(COUNT_OF(parts))];
        char c[4];

        for (uint32_t k = any(20) ? 1 : 1 + any(90); k > 0; k--) /* now and then a long run */
            buffer_text(b, p);
        if (any(30) == 0) {
            uint32_t point = any(UNICODE_POINTS - 0x800);

            buffer_add(b, c, (size_t)unicode_put(point < 0xd800 ? point : point + 0x800, c));
        }
    }
}

/* The first place where the two differ, -1: none. */
static int64_t difference(struct scan *s, const struct pattern *p, struct pattern_scratch *scratch,
                          const struct buffer *b)
{
    struct pattern_search f = { .p = p, .s = scratch, .text = b->at, .n = b->n };
    size_t at = 0, n = 0, i = 0;

    while (pattern_next(&f, NULL) > 0) {
        if (i == n) { /* the next part */
            at += n;
            n = scan_pieces(s, b->at + at, b->n - at);
            i = 0;
        }
        if (f.from != at + i)
            return (int64_t)f.from;
        for (i++; i < n && !(s->start[i >> 6] >> (i & 63) & 1); i++)
            ;
        if (f.to != at + i)
            return (int64_t)f.from;
    }
    return at + n == b->n ? -1 : (int64_t)at;
}

static void compare(const char *name, const struct pattern *p, const uint8_t *classes,
                    scan_classify *classify, const char *isa)
{
    struct pattern_scratch *scratch = pattern_scratch_open();
    struct buffer b = { 0 };
    struct scan s;
    int64_t at = -1;

    scan_open(&s, scan_kind_of(name), classes);
    s.classify = classify;
    for (int i = 0; i < (tap_soak() ? 100000 : 3000) && at < 0; i++) {
        make(&b, 1 + any(i % 100 ? 200 : 100000));
        at = difference(&s, p, scratch, &b);
    }
    tap_ok(at < 0, "%s, %s", name, isa);
    if (at >= 0)
        printf("# at byte %lld: `%.60s`\n", (long long)at, b.at + (at > 20 ? at - 20 : 0));
    scan_free(&s);
    buffer_free(&b);
    pattern_scratch_close(scratch);
}

int main(void)
{
    static const char *const names[] = { "gpt2", "llama3", "qwen2" };
    uint8_t *classes = mem_take(UNICODE_POINTS);
    scan_classify *best = scan_classifier();
    int has = 0;

    unicode_classes(classes);
    while (has < COUNT_OF(isas) - 1 && isas[has].classify != best)
        has++;
    tap_plan(COUNT_OF(names) * COUNT_OF(isas));
    for (int i = 0; i < COUNT_OF(names); i++) {
        struct pattern p = { 0 };

        if (pattern_of_name(&p, names[i], "test", NULL) != OK)
            return 1;
        for (int k = 0; k < COUNT_OF(isas); k++)
            if (k <= has)
                compare(names[i], &p, classes, isas[k].classify, isas[k].name);
            else
                tap_skip(1, "no %s here", isas[k].name);
        pattern_free(&p);
    }
    mem_give(classes);
    return tap_done();
}
