/* A target of libFuzzer: any bytes as tokenizer.json, or behind a byte 0 .. 3 as a rank file; what
 * opens encodes and decodes, and byte-level ids of ranks come back as the text. */
#include "text/decoder.h"
#include "text/encoder.h"

#define TEXT "Hello  w\xc3\xb6rld 1234 don't <s>\xe2\x96\x81 \xe6\x97\xa5\xe6\x9c\xac\n\n aaaa aaaa"

static const char *const encodings[] = { "gpt2", "cl100k", "o200k", "qwen" };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct tokenizer *t = NULL;
    struct encoder *c;
    struct decoder *d;
    struct ids ids = { 0 };
    struct buffer b = { 0 };
    struct err e = { "" };
    char about[200];
    int ranks = n > 0 && *p < COUNT_OF(encodings);

    if ((ranks ? tokenizer_open_ranks(&t, p + 1, n - 1, encodings[*p], &e)
               : tokenizer_open(&t, p, n, &e)) != OK) {
        BUG_IF(t || !*e.text);
        return 0;
    }
    tokenizer_describe(t, about, sizeof about);
    c = encoder_open(t);
    d = decoder_open(t, 1);
    if (encoder_encode(c, TEXT, sizeof TEXT - 1, 1, &ids, &e) == OK) {
        for (size_t i = 0; i < ids.n; i++)
            BUG_IF(ids.at[i] >= tokenizer_vocab_size(t));
        BUG_IF(decoder_decode(d, ids.at, ids.n, &b, &e) != OK && ranks);
        BUG_IF(ranks && (b.n != sizeof TEXT - 1 || memcmp(b.at, TEXT, b.n)));
    } else {
        BUG_IF(ranks);
    }
    ids_free(&ids);
    buffer_free(&b);
    encoder_close(c);
    decoder_close(d);
    tokenizer_close(t);
    return 0;
}
