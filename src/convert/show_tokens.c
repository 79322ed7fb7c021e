#include "convert/show_tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "text/byte_tokenizer.h"
#include "text/decoder.h"
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
        say("tokenizer     %s of %zu bytes",
            tokenizer_is_model(t->tokenizer_json, t->tokenizer_bytes) ? "SentencePiece model"
                                                                      : "tokenizer.json",
            t->tokenizer_bytes);
    else
        say("tokenizer     none in the file");
}

static int64_t longest(const struct tokens *t)
{
    int64_t most = 0;

    for (int64_t d = 0; d < t->ndocuments; d++) {
        int64_t length = tokens_first(t, d + 1) - tokens_first(t, d);

        most = max_i64(most, length);
    }
    return most;
}

static void say_documents(const struct tokens *t)
{
    char number[32], mean[32], most[32];

    if (t->ndocuments == 0)
        say("documents     not listed");
    else
        say("documents     %s of %s tokens on average, %s the longest",
            log_thousands(number, t->ndocuments), log_thousands(mean, t->count / t->ndocuments),
            log_thousands(most, longest(t)));
}

enum status show_tokens_info(const char *path, const struct tokens_stated *stated, struct err *e)
{
    struct tokens t;
    enum status st = tokens_open_as(&t, path, stated, e);
    char number[32];

    if (st != OK)
        return st;
    say("file          %s", path);
    say("format        %s", t.format);
    say("tokens        %s (%s)", log_thousands(number, t.count), dtype_name(t.dtype));
    say_documents(&t);
    say("vocabulary    %s", t.vocab_size ? log_thousands(number, t.vocab_size) : "not said");
    if (t.eod >= 0)
        say("document end  %lld", (long long)t.eod);
    else
        say("document end  %s", t.vocab_size ? "none" : "not said");
    say_tokenizer(&t);
    say("xxh3          %s%s", t.hash, t.vocab_size ? "" : " (of samples)");
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

/* The document as text; special tokens show as their names. */
static enum status say_text(const struct tokenizer *k, const int32_t *ids, int64_t n, struct err *e)
{
    struct decoder *d = decoder_open(k, 0);
    struct buffer text = { 0 };
    enum status st = OK;
    char *line;

    for (int64_t i = 0; i < n && st == OK; i++)
        st = decoder_add(d, (uint32_t)ids[i], &text, e);
    if (st == OK)
        st = decoder_end(d, &text, e);
    if (st == OK) {
        line = mem_take(text.n * 4 + 1);
        escape(line, (const unsigned char *)text.at, text.n);
        say("%s", line);
        mem_give(line);
    }
    buffer_free(&text);
    decoder_close(d);
    return st;
}

static void say_ids(const int32_t *ids, int64_t n)
{
    char *line = mem_take((size_t)n * 12 + 1), *out = line;

    for (int64_t i = 0; i < n; i++)
        out += sprintf(out, "%s%d", i ? " " : "", ids[i]);
    say("%s", line);
    mem_give(line);
}

/* k NULL: ids. */
static enum status peek_document(const struct tokens *t, const struct tokenizer *k, int64_t d,
                                 int64_t tokens, struct err *e)
{
    int64_t at = t->ndocuments ? tokens_first(t, d) : 0;
    int64_t end = t->ndocuments ? tokens_first(t, d + 1) : t->count, n = min_i64(tokens, end - at);
    int32_t *ids;
    enum status st;
    char length[32], start[32];

    if (at < 0 || n < 0 || end > t->count)
        return err_set(e, E_FILE,
                       "%s: document %lld is listed at tokens %lld to %lld; see "
                       "`pretrain-data check`",
                       t->path, (long long)d, (long long)at, (long long)end);
    ids = mem_take((size_t)n * sizeof *ids);
    st = tokens_read(t, at, n, ids, e);

    if (st == OK) {
        say("document %lld: %s tokens from %s%s", (long long)d, log_thousands(length, end - at),
            log_thousands(start, at), n < end - at ? ", cut" : "");
        if (k)
            st = say_text(k, ids, n, e);
        else
            say_ids(ids, n);
    }
    mem_give(ids);
    return st;
}

enum status show_tokens_peek(const char *path, const struct tokens_stated *stated, int64_t first,
                             int64_t documents, int64_t tokens, struct err *e)
{
    struct tokens t;
    enum status st = tokens_open_as(&t, path, stated, e);
    int64_t n = max_i64(1, t.ndocuments);
    struct tokenizer *k = NULL;
    struct err why = { "" };

    if (st != OK)
        return st;
    if (t.tokenizer_json && tokenizer_open(&k, t.tokenizer_json, t.tokenizer_bytes, &why) != OK)
        warn("%s: ids, not text: its tokenizer: %s", path, why.text);
    if (first >= n)
        st = err_set(e, E_INPUT, "--first %lld: %s has documents 0 .. %lld", (long long)first, path,
                     (long long)n - 1);
    for (int64_t d = first; d < n && d - first < documents && st == OK; d++)
        st = peek_document(&t, k, d, tokens, e);
    tokenizer_close(k);
    tokens_close(&t);
    return st;
}

enum status show_tokens_check(const char *path, const struct tokens_stated *stated, struct err *e)
{
    struct tokens t;
    int64_t largest;
    enum status st = tokens_open_as(&t, path, stated, e);
    char tokens[32], documents[32];

    if (st != OK)
        return st;
    st = tokens_check(&t, &largest, e);
    if (st == OK && t.vocab_size == 0)
        say("%s: ok: %s, %s tokens of %s, the largest is %lld, %s documents", path, t.format,
            log_thousands(tokens, t.count), dtype_name(t.dtype), (long long)largest,
            t.ndocuments ? log_thousands(documents, t.ndocuments) : "no list of");
    else if (st == OK)
        say("%s: ok: hash, %s tokens below %lld, %s documents", path,
            log_thousands(tokens, t.count), (long long)t.vocab_size,
            log_thousands(documents, t.ndocuments));
    tokens_close(&t);
    return st;
}
