/* usage: ids encode|special|parts|literal|decode|skip TOKENIZER [ENCODING] < FRAMES > FRAMES; with
 * ENCODING the file is one of tiktoken's. A frame is a count, uint32, and so many bytes (texts) or
 * uint32 (ids). special: with the template; parts: the same,
 * but cut at every place where tokenizer_cut() allows it; literal: contents of special tokens are
 * text; skip: without special tokens. A text that is refused gives the frame 0xffffffff. Messages
 * go to stderr, exit 1. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "text/decoder.h"
#include "text/encoder.h"

static int read_frame(struct buffer *b, size_t unit)
{
    uint32_t n;

    b->n = 0;
    if (fread(&n, 4, 1, stdin) != 1)
        return 0;
    buffer_grow(b, n * unit);
    b->n = n * unit;
    return b->n == 0 || fread(b->at, b->n, 1, stdin) == 1;
}

static void write_frame(const void *p, uint32_t n, size_t unit)
{
    fwrite(&n, 4, 1, stdout);
    if (p && n && n != UINT32_MAX)
        fwrite(p, unit, n, stdout);
}

static int parts; /* texts that were cut */

static enum status encode_parts(const struct tokenizer *t, struct encoder *c,
                                const struct buffer *in, struct ids *out, struct err *e)
{
    size_t from = 0;
    enum status st = OK;

    for (size_t seen = 2; seen < in->n && st == OK; seen++) {
        size_t to = from + 2 < seen ? tokenizer_cut(t, in->at + from, seen - from, 0) : 0;

        if (!to)
            continue;
        parts += from == 0;
        st = encoder_part(c, in->at + from, to, from == 0, 0, out, e);
        from += to;
    }
    return st == OK ? encoder_part(c, in->at + from, in->n - from, from == 0, 1, out, e) : st;
}

static int encode(const struct tokenizer *t, int special, int literal, int cut)
{
    struct encoder *c = encoder_open(t);
    struct buffer in = { 0 };
    struct ids out = { 0 };
    struct err e = { "" };

    encoder_set_specials_as_text(c, literal);
    while (read_frame(&in, 1)) {
        out.n = 0;
        e.text[0] = 0;
        if ((cut ? encode_parts(t, c, &in, &out, &e)
                 : encoder_encode(c, in.at, in.n, special, &out, &e)) == OK) {
            write_frame(out.at, (uint32_t)out.n, 4);
        } else {
            fprintf(stderr, "%s\n", e.text);
            write_frame(NULL, UINT32_MAX, 0);
        }
    }
    buffer_free(&in);
    ids_free(&out);
    encoder_close(c);
    return 0;
}

static int decode(const struct tokenizer *t, int skip)
{
    struct decoder *d = decoder_open(t, skip);
    struct buffer in = { 0 }, out = { 0 };
    struct err e = { "" };
    int bad = 0;

    while (read_frame(&in, 4) && !bad) {
        out.n = 0;
        bad = decoder_decode(d, (const uint32_t *)in.at, in.n / 4, &out, &e) != OK;
        write_frame(out.at, (uint32_t)out.n, 1);
    }
    fprintf(stderr, "%s", e.text);
    buffer_free(&in);
    buffer_free(&out);
    decoder_close(d);
    return bad;
}

int main(int argc, char **argv)
{
    struct err e = { "" };
    struct tokenizer *t = NULL;
    char *text = NULL, about[400];
    size_t n;
    int bad;

    if (argc != 3 && argc != 4)
        return 2;
    if (file_read_text(argv[2], (size_t)1 << 30, &text, &n, &e) != OK ||
        (argc == 4 ? tokenizer_open_ranks(&t, text, n, argv[3], &e)
                   : tokenizer_open(&t, text, n, &e)) != OK) {
        fprintf(stderr, "%s\n", e.text);
        mem_give(text);
        return 1;
    }
    mem_give(text);
    tokenizer_describe(t, about, sizeof about);
    fprintf(stderr, "%s\n", about);
    if (argv[1][0] == 'd' || argv[1][1] == 'k')
        bad = decode(t, argv[1][1] == 'k');
    else
        bad = encode(t, argv[1][0] == 's', argv[1][0] == 'l', argv[1][0] == 'p');
    if (argv[1][0] == 'p')
        fprintf(stderr, "%d texts were cut\n", parts);
    tokenizer_close(t);
    return bad;
}
