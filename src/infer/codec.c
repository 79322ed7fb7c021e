#include "infer/codec.h"

#include "base/arena.h"
#include "text/decoder.h"
#include "text/encoder.h"

struct codec {
    struct tokenizer *t; /* NULL: there is none, see why */
    struct encoder *encoder;
    struct decoder *decoder;
    size_t front, back; /* ids of the template */
    struct ids ids;
    struct buffer text;
    enum status status;
    struct err why;
};

struct codec *codec_open(const char *json, size_t bytes, const char *path)
{
    struct codec *c = mem_take(sizeof *c);

    if (!json) {
        c->status =
            err_set(&c->why, E_INPUT, "a text, but the model has no tokenizer: it takes ids only");
        return c;
    }
    if ((c->status = tokenizer_open(&c->t, json, bytes, &c->why)) != OK) {
        err_prefix(&c->why, "the tokenizer.%s of %s",
                   tokenizer_is_model(json, bytes) ? "model" : "json", path);
        return c;
    }
    c->encoder = encoder_open(c->t);
    c->decoder = decoder_open(c->t, 1);
    tokenizer_template(c->t, &c->front, &c->back);
    return c;
}

void codec_close(struct codec *c)
{
    if (!c)
        return;
    encoder_close(c->encoder);
    decoder_close(c->decoder);
    tokenizer_close(c->t);
    ids_free(&c->ids);
    buffer_free(&c->text);
    mem_give(c);
}

enum status codec_check(const struct codec *c, struct err *e)
{
    return c->t ? OK : err_set(e, c->status, "%s", c->why.text);
}

enum status codec_encode(struct codec *c, const char *text, size_t bytes, int start,
                         const int32_t **ids, int64_t *n, struct err *e)
{
    enum status st = codec_check(c, e);
    const uint32_t *x;
    size_t skip = 0;

    if (st != OK)
        return st;
    c->ids.n = 0;
    if ((st = encoder_encode(c->encoder, text, bytes, start, &c->ids, e)) != OK)
        return st;
    x = c->ids.at;
    if (start) {
        BUG_IF(c->ids.n < c->front + c->back);
        c->ids.n -= c->back;
        skip = c->front == 1 && c->ids.n > 1 && x[0] == x[1];
    }
    *ids = (const int32_t *)x + skip;
    *n = (int64_t)(c->ids.n - skip);
    return OK;
}

enum status codec_decode(struct codec *c, const int32_t *ids, int64_t n, int64_t first,
                         const char **text, size_t *bytes, struct err *e)
{
    enum status st = codec_check(c, e);
    size_t before = 0;

    c->text.n = 0;
    for (int64_t i = 0; i < n && st == OK; i++) {
        st = decoder_add(c->decoder, (uint32_t)ids[i], &c->text, e);
        before = i < first ? c->text.n : before;
    }
    if (st == OK)
        st = decoder_end(c->decoder, &c->text, e);
    *text = (const char *)c->text.at + before;
    *bytes = c->text.n - before;
    return st;
}
