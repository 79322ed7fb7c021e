#include "convert/show_tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "data/tokens.h"
#include "text/byte_tokenizer.h"
#include "text/utf8.h"

static int is_bytes(const struct tokens *t)
{
    const char *json = byte_tokenizer_json();

    return t->vocab_size == BYTE_VOCAB && t->tokenizer_bytes == strlen(json) &&
           memcmp(t->tokenizer_json, json, t->tokenizer_bytes) == 0;
}

static void say_tokenizer(const struct tokens *t)
{
    if (is_bytes(t))
        say("tokenizer     bytes");
    else if (t->tokenizer_json)
        say("tokenizer     tokenizer.json of %zu bytes", t->tokenizer_bytes);
    else
        say("tokenizer     none in the file");
}

static int64_t longest(const struct tokens *t)
{
    int64_t most = 0;

    for (int64_t d = 0; d < t->ndocuments; d++) {
        int64_t end = d + 1 < t->ndocuments ? t->documents[d + 1] : t->count;

        most = max_i64(most, end - t->documents[d]);
    }
    return most;
}

enum status show_tokens_info(const char *path, struct err *e)
{
    struct tokens t;
    enum status st = tokens_open(&t, path, e);
    char number[32], mean[32], most[32];

    if (st != OK)
        return st;
    say("file          %s", path);
    say("tokens        %s (%s)", log_thousands(number, t.count), dtype_name(t.dtype));
    say("documents     %s of %s tokens on average, %s the longest",
        log_thousands(number, t.ndocuments), log_thousands(mean, t.count / t.ndocuments),
        log_thousands(most, longest(&t)));
    say("vocabulary    %s", log_thousands(number, t.vocab_size));
    if (t.eod >= 0)
        say("document end  %lld", (long long)t.eod);
    else
        say("document end  none");
    say_tokenizer(&t);
    say("xxh3          %s", t.hash);
    tokens_close(&t);
    return OK;
}

/* The character that begins at p is good UTF-8 and prints: its length, else 0. */
static size_t printable(const unsigned char *p, size_t n)
{
    if (*p < 0x80)
        return *p >= 32 && *p != 127 && *p != '\\';
    for (size_t k = 2; k <= 4 && k <= n; k++) {
        struct utf8_check u = { 0 };

        if (utf8_check_add(&u, p, k))
            return 0;
        if (!utf8_check_end(&u))
            return p[0] == 0xc2 && p[1] < 0xa0 ? 0
                                               : k; /* U+0080 .. U+009F are control characters */
    }
    return 0;
}

/* Puts text on one line: what does not print is escaped. Returns the end of out. */
static char *escape(char *out, const unsigned char *p, size_t n)
{
    static const char names[256] = { ['\n'] = 'n', ['\t'] = 't', ['\r'] = 'r', ['\\'] = '\\' };

    for (size_t i = 0; i < n;) {
        size_t k = printable(p + i, n - i);

        if (k) {
            memcpy(out, p + i, k);
            out += k;
        } else if (names[p[i]]) {
            *out++ = '\\';
            *out++ = names[p[i]];
        } else {
            out += sprintf(out, "\\x%02x", p[i]);
        }
        i += k ? k : 1;
    }
    return out;
}

/* A run of bytes is decoded as one text; the end token shows as its name. */
static void say_bytes(const int32_t *ids, int64_t n)
{
    char *line = mem_take((size_t)n * 16 + 1), *out = line;
    unsigned char *run = mem_take((size_t)n);
    size_t length = 0;

    for (int64_t i = 0; i <= n; i++) {
        if (i < n && ids[i] != BYTE_EOD) {
            run[length++] = (unsigned char)ids[i];
            continue;
        }
        out = escape(out, run, length);
        length = 0;
        if (i < n)
            out += sprintf(out, "<|endoftext|>");
    }
    say("%s", line);
    mem_give(line);
    mem_give(run);
}

static void say_ids(const int32_t *ids, int64_t n)
{
    char *line = mem_take((size_t)n * 12 + 1), *out = line;

    for (int64_t i = 0; i < n; i++)
        out += sprintf(out, "%s%d", i ? " " : "", ids[i]);
    say("%s", line);
    mem_give(line);
}

static enum status peek_document(const struct tokens *t, int64_t d, int64_t tokens, struct err *e)
{
    int64_t at = t->documents[d], end = d + 1 < t->ndocuments ? t->documents[d + 1] : t->count;
    int64_t n = min_i64(tokens, end - at);
    int32_t *ids = mem_take((size_t)n * sizeof *ids);
    enum status st = tokens_read(t, at, n, ids, e);
    char length[32], start[32];

    if (st == OK) {
        say("document %lld: %s tokens from %s%s", (long long)d, log_thousands(length, end - at),
            log_thousands(start, at), n < end - at ? ", cut" : "");
        (is_bytes(t) ? say_bytes : say_ids)(ids, n);
    }
    mem_give(ids);
    return st;
}

enum status show_tokens_peek(const char *path, int64_t first, int64_t documents, int64_t tokens,
                             struct err *e)
{
    struct tokens t;
    enum status st = tokens_open(&t, path, e);

    if (st != OK)
        return st;
    if (first >= t.ndocuments)
        st = err_set(e, E_INPUT, "--first %lld: %s has documents 0 .. %lld", (long long)first, path,
                     (long long)t.ndocuments - 1);
    for (int64_t d = first; d < t.ndocuments && d - first < documents && st == OK; d++)
        st = peek_document(&t, d, tokens, e);
    tokens_close(&t);
    return st;
}

enum status show_tokens_check(const char *path, struct err *e)
{
    struct tokens t;
    enum status st = tokens_open(&t, path, e);
    char tokens[32], documents[32];

    if (st != OK)
        return st;
    st = tokens_check(&t, e);
    if (st == OK)
        say("%s: ok: hash, %s tokens below %lld, %s documents", path,
            log_thousands(tokens, t.count), (long long)t.vocab_size,
            log_thousands(documents, t.ndocuments));
    tokens_close(&t);
    return st;
}
