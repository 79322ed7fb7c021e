/* Encoders and decoders beyond single cases: long texts in linear time, NUL bytes, ids above 65535,
 * results in parts, files that are cut or damaged. */
#include "text/encoder.h"

#include <time.h>

#include "tests/tap.h"
#include "text/byte_tokenizer.h"
#include "text/decoder.h"
#include "text/merger.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

static struct tokenizer *open_text(const char *text)
{
    struct tokenizer *t = NULL;
    struct err e = { "" };

    if (tokenizer_open(&t, text, strlen(text), &e) != OK)
        printf("# %s\n", e.text);
    return t;
}

/* ---- small tokenizers ---- */

#define BYTE_LEVEL(regex)                                                   \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false," \
    "\"trim_offsets\":true,\"use_regex\":" regex "},"                       \
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"       \
    "\"trim_offsets\":true,\"use_regex\":true}"

/* The bytes, then merges of `a` with itself and of all pairs of letters: a long run has no border.
 */
static char *runs_json(const char *parts)
{
    struct buffer b = { 0 };
    char text[64];
    const char *vocab = strstr(byte_tokenizer_json(), "\"vocab\":");
    int n = 256;

    buffer_text(&b, "{\"version\":\"1.0\",");
    buffer_text(&b, parts);
    buffer_text(&b, ",\"model\":{\"type\":\"BPE\",");
    buffer_add(&b, vocab, (size_t)(strstr(vocab, "},\n") - vocab));
    for (int i = 0; i < 26 * 26; i++, n++) {
        snprintf(text, sizeof text, ",\"%c%c\":%d", 'a' + i / 26, 'a' + i % 26, n);
        buffer_text(&b, text);
    }
    for (int k = 4; k <= 16; k *= 2, n++) {
        snprintf(text, sizeof text, ",\"%.*s\":%d", k, "aaaaaaaaaaaaaaaa", n);
        buffer_text(&b, text);
    }
    buffer_text(&b, "},\"merges\":[\"a a\",\"aa aa\",\"aaaa aaaa\",\"aaaaaaaa aaaaaaaa\"");
    for (int i = 1; i < 26 * 26; i++) {
        snprintf(text, sizeof text, ",\"%c %c\"", 'a' + i / 26, 'a' + i % 26);
        buffer_text(&b, text);
    }
    buffer_add(&b, "]}}", 4);
    return b.at;
}

/* Letters and spaces of a text with words: Llama-2's parts, so that it is copied in parts. */
static const char llama2[] =
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
    "\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
    "\"\xe2\x96\x81\"}]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
    "\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"Fuse\"},{\"type\":"
    "\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},\"model\":{\"type\":\"BPE\","
    "\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"\xe2\x96\x81\":1,%s\"ab\":30,\"\xe2\x96\x81"
    "ab\":31,\"\xe2\x96\x81\xe2\x96\x81\":32},\"merges\":[\"a b\",\"\xe2\x96\x81 ab\","
    "\"\xe2\x96\x81 \xe2\x96\x81\"]}}";

static struct tokenizer *open_llama2(void)
{
    char letters[400] = "", json[2000];

    for (int i = 0; i < 26; i++)
        snprintf(letters + strlen(letters), 20, "\"%c\":%d,", 'a' + i, i + 2);
    snprintf(json, sizeof json, llama2, letters);
    return open_text(json);
}

/* ---- tests ---- */

static double seconds(struct encoder *c, const char *text, size_t n, struct ids *ids)
{
    clock_t begin = clock();

    ids->n = 0;
    if (encoder_encode(c, text, n, 0, ids, NULL) != OK)
        return 1e9;
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

static int comes_back(const struct tokenizer *t, const struct ids *ids, const char *text, size_t n)
{
    struct decoder *d = decoder_open(t, 0);
    struct buffer b = { 0 };
    int same = decoder_decode(d, ids->at, ids->n, &b, NULL) == OK && b.n == n &&
               (n == 0 || memcmp(b.at, text, n) == 0);

    decoder_close(d);
    buffer_free(&b);
    return same;
}

/* Public bug B59: long texts without a break. */
static void long_runs(void)
{
    static const char *const alphabets[] = {
        "a", "_",  "abcdefghijklmnopqrstuvwxyz",
        " ", "\n", "ABCDEFGHIJKLMNOPabcdefghijklm0123456789+/"
    };
    static const char *const regexes[] = { BYTE_LEVEL("false"), BYTE_LEVEL("true") };
    size_t n = tap_soak() ? 8000000 : 300000;
    char *text = mem_take(2 * n);

    for (int k = 0; k < 2; k++) {
        char *json = runs_json(regexes[k]);
        struct tokenizer *t = open_text(json);
        struct encoder *c = encoder_open(t);
        struct ids ids = { 0 };

        for (int i = 0; i < COUNT_OF(alphabets); i++) {
            size_t m = strlen(alphabets[i]);
            uint64_t state = 1;
            double one, two;

            for (size_t j = 0; j < 2 * n; j++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                text[j] = alphabets[i][(state >> 33) % m];
            }
            one = seconds(c, text, n, &ids);
            two = seconds(c, text, 2 * n, &ids);
            tap_ok(two < 3 * one + 0.1 && one < (double)n * 2e-6 &&
                       comes_back(t, &ids, text, 2 * n),
                   "a run of `%.5s...` takes linear time%s",
                   *alphabets[i] == '\n' ? "\\n" : alphabets[i], k ? ", GPT-2 pattern" : "");
            printf("# %zu bytes %.3f s, twice as many %.3f s\n", n, one, two);
        }
        ids_free(&ids);
        encoder_close(c);
        tokenizer_close(t);
        mem_give(json);
    }
    mem_give(text);
}

/* A text longer than a window is copied in parts on its way. */
static void windows(void)
{
    struct tokenizer *t = open_llama2();
    struct encoder *c = encoder_open(t);
    struct buffer text = { 0 };
    struct ids ids = { 0 };
    size_t want = 0, bad = 0;
    int64_t before;

    for (int i = 0; i < 400000; i++) { /* "▁ab" "b" ... : 31, then 3 */
        buffer_text(&text, i ? " abb" : "abb");
        want += 2;
    }
    encoder_encode(c, text.at, text.n, 0, &ids, NULL);
    for (size_t i = 0; i < ids.n; i++)
        bad += ids.at[i] != (i % 2 ? 3u : 31u);
    tap_ok(ids.n == want && bad == 0, "a long text is encoded in parts without seams");
    tap_ok(comes_back(t, &ids, text.at, text.n), "and comes back");
    before = mem_resident();
    ids.n = 0;
    encoder_encode(c, text.at, text.n, 0, &ids, NULL);
    tap_ok(mem_resident() - before < 1 << 20, "without more memory the second time");
    ids_free(&ids);
    buffer_free(&text);
    encoder_close(c);
    tokenizer_close(t);
}

static enum status collect(void *to, const uint32_t *ids, size_t n, struct err *e)
{
    struct ids *all = to;

    (void)e;
    for (size_t i = 0; i < n; i++)
        ids_add(all, ids[i]);
    return n > 200000 ? E_BUG : OK;
}

/* The bytes' tokenizer: ids are bytes, NUL too (public bug B57); its end token inside a text. */
static void bytes(void)
{
    struct tokenizer *t = open_text(byte_tokenizer_json());
    struct encoder *c = encoder_open(t);
    struct ids ids = { 0 }, all = { 0 };
    char *text = mem_take(300000);
    struct err e = { "" };
    int good = 1;

    encoder_encode(c, "ab\0cd\xc3\xa9", 7, 0, &ids, NULL);
    for (int i = 0; i < 7; i++)
        good &= ids.n == 7 && ids.at[i] == (unsigned char)"ab\0cd\xc3\xa9"[i];
    tap_ok(good, "a NUL is a byte like any other");
    ids.n = 0;
    encoder_encode(c, "a<|endoftext|>", 14, 0, &ids, NULL);
    tap_ok(ids.n == 2 && ids.at[1] == BYTE_EOD && encoder_specials_found(c) == 1,
           "a special token's content is that token");
    encoder_set_specials_as_text(c, 1);
    ids.n = 0;
    encoder_encode(c, "a<|endoftext|>", 14, 0, &ids, NULL);
    tap_ok(ids.n == 14 && encoder_specials_found(c) == 1, "or text, if it shall be");
    memset(text, 'x', 300000);
    tap_ok(encoder_stream(c, text, 300000, 0, collect, &all, NULL) == OK && all.n == 300000,
           "a long text comes in parts");
    tap_ok(encoder_encode(c, "a\xff", 2, 0, &ids, &e) == E_FILE && strstr(e.text, "byte 2"),
           "what is not UTF-8 is refused");
    tap_ok(tokenizer_vocab_size(t) == BYTE_VOCAB && tokenizer_end_of_document(t) == BYTE_EOD &&
               tokenizer_begin_of_text(t) == -1 && tokenizer_id(t, "<|endoftext|>", 13) == 256,
           "vocabulary, end of document");
    mem_give(text);
    ids_free(&ids);
    ids_free(&all);
    encoder_close(c);
    tokenizer_close(t);
}

/* Public bug B41: ids above 65535. */
static void large_ids(void)
{
    struct buffer b = { 0 };
    char entry[40];
    struct tokenizer *t;
    struct encoder *c;
    struct ids ids = { 0 };

    buffer_text(&b, "{\"added_tokens\":[{\"id\":65536,\"content\":\"<end>\",\"special\":true}],"
                    "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
                    "\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"merges\":[],\"vocab\":{");
    for (int i = 0; i < 65536; i++) {
        snprintf(entry, sizeof entry, "%s\"w%d\":%d", i ? "," : "", i, i);
        buffer_text(&b, entry);
    }
    buffer_add(&b, "}}}", 4);
    t = open_text(b.at);
    c = encoder_open(t);
    encoder_encode(c, "w65535 <end>w0", 14, 0, &ids, NULL);
    tap_ok(tokenizer_vocab_size(t) == 65537 && ids.n == 3 && ids.at[0] == 65535 &&
               ids.at[1] == 65536 && ids.at[2] == 0,
           "ids above 65535");
    ids_free(&ids);
    encoder_close(c);
    tokenizer_close(t);
    buffer_free(&b);
}

/* One id at a time gives the same bytes. */
static void one_by_one(void)
{
    struct tokenizer *t = open_llama2();
    struct decoder *d = decoder_open(t, 0);
    struct encoder *c = encoder_open(t);
    struct ids ids = { 0 };
    struct buffer b = { 0 };
    size_t n = 0;
    int good = 1;

    encoder_encode(c, " ab  xy ab", 10, 0, &ids, NULL);
    for (size_t i = 0; i < ids.n; i++) {
        n = b.n;
        decoder_add(d, ids.at[i], &b, NULL);
        good &= b.n > n || i == 0;
    }
    decoder_end(d, &b, NULL);
    tap_ok(good && b.n == 10 && memcmp(b.at, " ab  xy ab", 10) == 0, "decoding one by one");
    decoder_close(d);
    encoder_close(c);
    tokenizer_close(t);
    ids_free(&ids);
    buffer_free(&b);
}

/* A file that ends early, or has another byte somewhere, is refused or works; it never crashes. */
static void damaged(void)
{
    char *json = runs_json(BYTE_LEVEL("true")), *copy;
    size_t n = strlen(json), opened = 0;
    uint64_t state = 7;

    copy = mem_take(n + 1);
    for (size_t k = 0; k < n; k += n / 60) {
        struct tokenizer *t = NULL;

        opened += tokenizer_open(&t, json, k, NULL) == OK;
        tokenizer_close(t);
    }
    tap_ok(opened == 0, "a file that ends early is refused");
    for (int k = 0; k < (tap_soak() ? 20000 : 300); k++) {
        struct tokenizer *t = NULL;

        memcpy(copy, json, n);
        for (int i = 0; i < 2; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            copy[(state >> 33) % n] = "\"{}[],:0x\\u"[(state >> 20) % 11];
        }
        if (tokenizer_open(&t, copy, n, NULL) == OK) {
            struct encoder *c = encoder_open(t);
            struct ids ids = { 0 };

            encoder_encode(c, "hello aaaa world 12", 19, 1, &ids, NULL);
            opened++;
            ids_free(&ids);
            encoder_close(c);
        }
        tokenizer_close(t);
    }
    tap_ok(1, "a damaged file does no harm (%zu still work)", opened);
    mem_give(copy);
    mem_give(json);
}

/* Whole texts are checked by characters, single bytes by states: the same answer, at the same byte.
 */
static void utf8(void)
{
    static const unsigned char edges[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                           0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                           0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff };
    enum { K = COUNT_OF(edges) };
    unsigned char p[8] = { 0xc3, 0xa9, 0, 0, 0, 0, 'a', 0x80 };
    int differ = 0;

    for (int i = 0; i < K * K * K * K; i++) {
        struct utf8_check whole = { 0 }, steps = { 0 };
        int bad = 0, faulty;

        p[2] = edges[i % K];
        p[3] = edges[i / K % K];
        p[4] = edges[i / K / K % K];
        p[5] = edges[i / K / K / K];
        faulty = utf8_check_add(&whole, p, 7) || utf8_check_end(&whole);
        for (int k = 0; k < 7 && !bad; k++)
            bad = utf8_check_add(&steps, p + k, 1);
        bad = bad || utf8_check_end(&steps);
        differ += bad != faulty || whole.at != steps.at;
    }
    tap_ok(differ == 0, "UTF-8 by characters and by bytes: %d of %d differ", differ, K * K * K * K);
}

/* Few symbols are merged by looking at all pairs, many with a heap, and so are few if ranks are too
 * large for that: the same ids. */
static void two_ways(void)
{
    char *json = runs_json(BYTE_LEVEL("false"));
    struct tokenizer *t = open_text(json);
    struct model large = t->model;
    struct merger g = { 0 };
    struct ids few = { 0 }, many = { 0 };
    struct err e = { "" };
    uint32_t r = 1;
    int differ = 0, pieces = 0;

    large.ranks = UINT32_MAX;
    for (size_t n = 1; n <= 80; n++)
        for (int k = 0; k < 200; k++, pieces++) {
            char p[80];

            for (size_t i = 0; i < n; i++) {
                r = r * 1664525u + 1013904223u;
                p[i] = (char)((r >> 16) % 8 < 5 ? 'a' : 'a' + (r >> 20) % 26);
            }
            few.n = many.n = 0;
            differ += merger_run(&t->model, &g, p, n, &few, &e) != OK ||
                      merger_run(&large, &g, p, n, &many, &e) != OK || few.n != many.n ||
                      memcmp(few.at, many.at, few.n * sizeof *few.at) != 0;
        }
    tap_ok(differ == 0, "pieces of 1 to 80 symbols, with and without a heap: %d of %d differ",
           differ, pieces);
    merger_free(&g);
    ids_free(&few);
    ids_free(&many);
    tokenizer_close(t);
    mem_give(json);
}

int main(void)
{
    tap_plan(12 + 3 + 6 + 1 + 1 + 2 + 1 + 1);
    long_runs();
    windows();
    bytes();
    large_ids();
    one_by_one();
    damaged();
    utf8();
    two_ways();
    return tap_done();
}
