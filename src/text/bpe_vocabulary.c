#include "text/bpe_vocabulary.h"

#include <string.h>

#include "text/split.h"
#include "text/unicode.h"

/* The bytes that s, in the byte-level alphabet, stands for; -1: it has another character. */
static int64_t decode(const char *s, char *bytes)
{
    int64_t n = 0;

    while (*s) {
        uint32_t c;
        int byte;

        s += unicode_at(s, &c);
        byte = split_character_byte(c);
        if (byte < 0)
            return -1;
        bytes[n++] = (char)byte;
    }
    return n;
}

static int32_t token_add(struct bpe_vocabulary *v, const char *text, int64_t n)
{
    struct bpe *o = v->out;
    int64_t at = o->ntokens ? o->start[o->ntokens] : 0;

    if (o->ntokens + 1 >= v->tokens_room) {
        int32_t room = 2 * v->tokens_room + 1024;

        o->start = mem_grow(o->start, (size_t)v->tokens_room * sizeof *o->start,
                            (size_t)room * sizeof *o->start);
        v->tokens_room = room;
    }
    if (at + n + WORD_PAD > v->text_room) {
        int64_t room = 2 * v->text_room + n + 65536;

        o->text = mem_grow(o->text, (size_t)v->text_room, (size_t)room);
        v->text_room = room;
    }
    memcpy(o->text + at, text, (size_t)n);
    o->start[o->ntokens + 1] = at + n;
    return o->ntokens++;
}

/* The token of these bytes (WORD_PAD more can be read), a new one if need be. */
static int32_t token_of(struct bpe_vocabulary *v, const char *bytes, int64_t n)
{
    int64_t *id = word_count_at(&v->ids, bytes, (uint32_t)n);

    if (!*id)
        *id = token_add(v, bytes, n) + 1;
    return (int32_t)*id - 1;
}

static void special_add(struct bpe_vocabulary *v, const char *s)
{
    struct bpe *o = v->out;
    size_t n = strlen(s);
    char *bytes = mem_take(n + WORD_PAD);
    int64_t k = decode(s, bytes);

    if (k >= 0) {
        token_of(v, bytes, k);
    } else {
        int32_t i = 0;

        while (i < o->ntokens && !(o->raw[i] && o->start[i + 1] - o->start[i] == (int64_t)n &&
                                   !memcmp(o->text + o->start[i], s, n)))
            i++;
        if (i == o->ntokens)
            o->raw[token_add(v, s, (int64_t)n)] = 1;
    }
    mem_give(bytes);
}

void bpe_vocabulary_start(struct bpe_vocabulary *v, const char *const *special, int nspecial,
                          struct bpe *out)
{
    *v = (struct bpe_vocabulary){ .out = out };
    *out = (struct bpe){ .raw = mem_take((size_t)nspecial) };
    for (int i = 0; i < nspecial; i++)
        special_add(v, special[i]);
    out->nspecial = out->ntokens;
    for (uint32_t c = 0; c < 2 * BPE_BYTES; c++) {
        int byte = split_character_byte(c);
        char one[WORD_PAD + 1] = { (char)byte };

        if (byte >= 0)
            v->byte[byte] = token_of(v, one, 1);
    }
}

int32_t bpe_vocabulary_join(struct bpe_vocabulary *v, uint64_t pair)
{
    const struct bpe *o = v->out;
    int32_t part[2] = { (int32_t)(pair >> 32), (int32_t)(uint32_t)pair }, id;
    int64_t n[2], at = 0;
    char *bytes;

    for (int i = 0; i < 2; i++)
        n[i] = o->start[part[i] + 1] - o->start[part[i]];
    bytes = mem_take((size_t)(n[0] + n[1] + WORD_PAD));
    for (int i = 0; i < 2; at += n[i], i++)
        memcpy(bytes + at, o->text + o->start[part[i]], (size_t)n[i]);
    id = token_of(v, bytes, n[0] + n[1]);
    mem_give(bytes);
    return id;
}

void bpe_vocabulary_close(struct bpe_vocabulary *v)
{
    word_count_close(&v->ids);
}

size_t bpe_token_text(const struct bpe *b, int32_t token, char *text)
{
    const char *s = b->text + b->start[token];
    size_t n = (size_t)(b->start[token + 1] - b->start[token]), at = 0;

    if (token < b->nspecial && b->raw[token]) {
        memcpy(text, s, n);
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        int k;

        split_byte_character((unsigned char)s[i], text + at, &k);
        at += (size_t)k;
    }
    return at;
}

void bpe_close(struct bpe *b)
{
    mem_give(b->start);
    mem_give(b->text);
    mem_give(b->raw);
    mem_give(b->merge);
    *b = (struct bpe){ 0 };
}
