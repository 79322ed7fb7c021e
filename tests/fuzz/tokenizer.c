/* A target of libFuzzer: any bytes as tokenizer.json; what opens encodes and decodes. */
#include "text/decoder.h"
#include "text/encoder.h"

#define TEXT "Hello  w\xc3\xb6rld 1234 don't <s>\xe2\x96\x81 \xe6\x97\xa5\xe6\x9c\xac\n\n aaaa aaaa"

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

    if (tokenizer_open(&t, p, n, &e) != OK) {
        BUG_IF(t || !*e.text);
        return 0;
    }
    tokenizer_describe(t, about, sizeof about);
    c = encoder_open(t);
    d = decoder_open(t, 1);
    if (encoder_encode(c, TEXT, sizeof TEXT - 1, 1, &ids, &e) == OK) {
        for (size_t i = 0; i < ids.n; i++)
            BUG_IF(ids.at[i] >= tokenizer_vocab_size(t));
        decoder_decode(d, ids.at, ids.n, &b, &e);
    }
    ids_free(&ids);
    buffer_free(&b);
    encoder_close(c);
    decoder_close(d);
    tokenizer_close(t);
    return 0;
}
