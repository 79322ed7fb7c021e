#include "infer/codec.h"

#include <string.h>

#include "base/arena.h"
#include "text/byte_tokenizer.h"

struct codec {
    int32_t *ids;
    size_t room;
    char *text;
    size_t text_room;
};

enum status codec_open(struct codec **c, const char *json, size_t bytes, struct err *e)
{
    const char *ours = byte_tokenizer_json();

    *c = NULL;
    if (!json)
        return OK;
    if (bytes != strlen(ours) || memcmp(json, ours, bytes) != 0)
        return err_set(
            e, E_INPUT,
            "the model's tokenizer.json is not in this build; give ids instead of texts");
    *c = mem_take(sizeof **c);
    return OK;
}

void codec_close(struct codec *c)
{
    if (!c)
        return;
    mem_give(c->ids);
    mem_give(c->text);
    mem_give(c);
}

enum status codec_encode(struct codec *c, const char *text, size_t bytes, int start,
                         const int32_t **ids, int64_t *n, struct err *e)
{
    (void)start; /* it puts nothing there */
    if (!c)
        return err_set(e, E_INPUT, "a text, but the model has no tokenizer: it takes ids only");
    if (bytes > c->room) {
        c->ids = mem_grow(c->ids, sizeof *c->ids * c->room, sizeof *c->ids * bytes);
        c->room = bytes;
    }
    for (size_t i = 0; i < bytes; i++)
        c->ids[i] = (unsigned char)text[i];
    *ids = c->ids;
    *n = (int64_t)bytes;
    return OK;
}

enum status codec_decode(struct codec *c, const int32_t *ids, int64_t n, const char **text,
                         size_t *bytes, struct err *e)
{
    (void)e;
    if ((size_t)n > c->text_room) {
        c->text = mem_grow(c->text, c->text_room, (size_t)n);
        c->text_room = (size_t)n;
    }
    *bytes = 0;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < BYTE_EOD)
            c->text[(*bytes)++] = (char)ids[i];
    *text = c->text;
    return OK;
}
