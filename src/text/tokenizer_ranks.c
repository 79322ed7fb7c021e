#include <string.h>

#include "base/arena.h"
#include "text/tokenizer_impl.h"

/* Encodings that such files belong to: their patterns and the id of <|endoftext|>, which is not in
 * the files. */
static const struct encoding {
    const char *name, *pattern;
    uint32_t end;
} encodings[] = {
    { "gpt2", "gpt2", 50256 },
    { "cl100k", "llama3", 100257 },
    { "o200k", "o200k", 199999 },
    { "qwen", "qwen2", 151643 },
};

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *p = c ? strchr(digits, c) : NULL;

    return p ? (int)(p - digits) : -1;
}

/* Base64 up to the space; the bytes as characters of the byte-level alphabet. Returns the number of
 * bytes of the text, -1: not base64. */
static int64_t read_token(const char *s, size_t n, struct buffer *name)
{
    uint32_t bits = 0;
    int have = 0;
    size_t i = 0;

    name->n = 0;
    for (; i < n && s[i] != ' ' && s[i] != '='; i++) {
        char c[2];
        int m;

        if (digit_of(s[i]) < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit_of(s[i]);
        if ((have += 6) < 8)
            continue;
        have -= 8;
        split_byte_character((unsigned char)(bits >> have), c, &m);
        buffer_add(name, c, (size_t)m);
    }
    while (i < n && s[i] == '=')
        i++;
    return i < n && s[i] == ' ' ? (int64_t)i : -1;
}

static enum status read_line(struct model *m, const char *s, size_t n, size_t line,
                             struct buffer *name, struct err *e)
{
    int64_t at = read_token(s, n, name);
    uint32_t rank = 0;

    for (at = at < 0 ? (int64_t)n : at + 1; at < (int64_t)n && rank < MODEL_IDS_MAX; at++) {
        if (s[at] < '0' || s[at] > '9')
            break;
        rank = rank * 10 + (uint32_t)(s[at] - '0');
    }
    if (n == 0 || s[n - 1] < '0' || s[n - 1] > '9' || at < (int64_t)n || name->n == 0 ||
        memchr(s, ' ', n) != memrchr(s, ' ', n) || !memchr(s, ' ', n))
        return err_set(e, E_FILE, "line %zu: not a token in base64, a space and its rank", line);
    buffer_add(name, "", 1); /* ends in 0 for messages */
    return model_add_name(m, name->at, name->n - 1, rank, "rank file", e);
}

/* Any two tokens merge if a token is their concatenation; its rank is the merge's. */
static void add_merges(struct model *m)
{
    model_merges_begin(m, 4 * (size_t)m->size);
    for (uint32_t id = 0; id < m->size; id++) {
        const struct model_text *t = &m->text[id];
        const char *s = m->names.pool.at + t->at;

        for (uint32_t k = 1; t->n != UINT32_MAX && k < t->n; k++) {
            int64_t left, right;

            if ((s[k] & 0xc0) == 0x80 || (left = strings_find(&m->names, s, k)) < 0 ||
                (right = strings_find(&m->names, s + k, t->n - k)) < 0)
                continue;
            model_merge_add(m, (uint32_t)left, (uint32_t)right, id, id);
        }
    }
}

static enum status read_ranks(struct model *m, const char *s, size_t n, struct err *e)
{
    struct buffer name = { 0 };
    enum status st = OK;
    size_t line = 1;

    for (size_t at = 0; at < n && st == OK; line++) {
        const char *end = memchr(s + at, '\n', n - at);
        size_t k = end ? (size_t)(end - s) - at : n - at;

        if (k > (k && s[at + k - 1] == '\r'))
            st = read_line(m, s + at, k - (s[at + k - 1] == '\r'), line, &name, e);
        at += k + 1;
    }
    buffer_free(&name);
    if (st != OK)
        return st;
    add_merges(m);
    m->unk = -1;
    m->ignore_merges = 1;
    model_index(m, 1);
    return m->bytes ? OK : err_set(e, E_FILE, "not all 256 bytes have a rank");
}

enum status tokenizer_open_ranks(struct tokenizer **t, const void *bytes, size_t n,
                                 const char *encoding, struct err *e)
{
    const struct encoding *c = NULL;
    struct tokenizer *k;
    enum status st;

    *t = NULL;
    for (int i = 0; i < COUNT_OF(encodings); i++)
        if (strcmp(encodings[i].name, encoding) == 0)
            c = &encodings[i];
    if (!c)
        return err_set(e, E_INPUT, "no encoding `%.60s` (gpt2, cl100k, o200k, qwen)", encoding);
    k = tokenizer_new();
    k->splitter.n = 1;
    k->splitter.bytes = 1;
    k->splitter.classes = k->classes;
    k->splitter.stage[0] = (struct stage){ .kind = STAGE_CUT, .behaviour = CUT_ISOLATED };
    k->detoken.n = 1;
    k->detoken.step[0].kind = DETOKEN_BYTES;
    st = pattern_of_name(&k->splitter.stage[0].pattern, c->pattern, "rank file", e);
    if (st == OK)
        st = read_ranks(&k->model, bytes, n, e);
    if (st == OK)
        st = tokenizer_add_token(k, "<|endoftext|>", c->end, e);
    return tokenizer_finish(t, k, st);
}
