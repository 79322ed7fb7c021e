#include <string.h>

#include "text/tokenizer_impl.h"

/* Its first field is the first piece; scores are binary numbers. No JSON has a NUL. */
int tokenizer_is_model(const void *bytes, size_t n)
{
    return n > 2 && *(const char *)bytes == '\n' && memchr(bytes, 0, n < 4096 ? n : 4096);
}

#ifndef HAVE_SENTENCEPIECE

enum status tokenizer_open_model(struct tokenizer **t, const void *bytes, size_t n, struct err *e)
{
    (void)bytes;
    (void)n;
    *t = NULL;
    return err_set(e, E_FILE,
                   "a SentencePiece model, and this build lacks libsentencepiece: install it "
                   "(Debian: libsentencepiece-dev) and configure again, or take the "
                   "tokenizer.json of the same tokenizer (save_pretrained of a fast tokenizer of "
                   "transformers writes it)");
}

void tokenizer_close_model(struct tokenizer *t)
{
    (void)t;
}

enum status tokenizer_encode_model(const struct tokenizer *t, const char *text, size_t n,
                                   struct ids *out, struct err *e)
{
    (void)t;
    (void)text;
    (void)n;
    (void)out;
    return err_set(e, E_BUG, "no libsentencepiece");
}

#else

#include "base/arena.h"
#include "text/sentencepiece.h"

/* The library takes a text whole, and some 100 bytes for each of its characters. */
#define TEXT_MAX_BYTES ((size_t)64 << 20)

/* What the library's own decoder does, in the terms of tokenizer.json. */
static const char decoder[] =
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
    "\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}";
static const char decoder_of_spaces[] = /* the model puts none in front */
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
    "\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}";

static void take_ids(void *to, const int *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ids_add(to, (uint32_t)ids[i]);
}

/* Does the model put a space in front of a text? */
static int puts_space(const struct spm *s)
{
    struct ids ids = { 0 };
    size_t n = 0;
    const char *p;
    int found;

    spm_encode(s, "a", 1, take_ids, &ids);
    p = ids.n ? spm_text(s, (int)ids.at[0], &n) : "";
    found = n >= 3 && memcmp(p, "\xe2\x96\x81", 3) == 0;
    ids_free(&ids);
    return found;
}

static enum status read_decoder(struct tokenizer *t, struct err *e)
{
    const char *text = puts_space(t->spm) ? decoder : decoder_of_spaces;
    json_t *o = json_loads(text, 0, NULL);
    struct part top = part_top(o);
    enum status st = detoken_read(&t->detoken, &top, e);

    json_decref(o);
    return st;
}

static enum status read_pieces(struct tokenizer *t, struct err *e)
{
    const struct spm *s = t->spm;
    int size = spm_size(s);
    uint32_t *special = mem_take((size_t)(size + 1) * sizeof *special);
    size_t n = 0;
    enum status st = OK;

    for (int id = 0; id < size && st == OK; id++) {
        size_t length;
        const char *text = spm_text(s, id, &length);

        st = model_add_name(&t->model, text, length, (uint32_t)id, "pieces", e);
        if (spm_is_special(s, id))
            special[n++] = (uint32_t)id;
    }
    model_merges_begin(&t->model, 0);
    model_index(&t->model, 0);
    if (st == OK)
        st = tokenizer_mark_special(t, special, n, e);
    mem_give(special);
    return st;
}

enum status tokenizer_open_model(struct tokenizer **t, const void *bytes, size_t n, struct err *e)
{
    struct tokenizer *k = tokenizer_new();
    char why[300] = "";
    enum status st;

    k->spm = spm_open(bytes, n, why, sizeof why);
    st = k->spm
             ? read_pieces(k, e)
             : err_set(e, E_FILE, "not a SentencePiece model, though it begins like one: %s", why);
    if (st == OK)
        st = read_decoder(k, e);
    if (st == OK && spm_begin(k->spm) >= 0)
        ids_add(&k->template.front, (uint32_t)spm_begin(k->spm));
    if (st == OK)
        k->end = spm_end(k->spm);
    return tokenizer_finish(t, k, st);
}

void tokenizer_close_model(struct tokenizer *t)
{
    spm_close(t->spm);
}

enum status tokenizer_encode_model(const struct tokenizer *t, const char *text, size_t n,
                                   struct ids *out, struct err *e)
{
    if (n > TEXT_MAX_BYTES)
        return err_set(e, E_RESOURCE,
                       "a text of %zu MiB: libsentencepiece takes texts whole, here up to %zu MiB; "
                       "split it, or take the tokenizer.json of the same tokenizer",
                       n >> 20, TEXT_MAX_BYTES >> 20);
    return spm_encode(t->spm, text, n, take_ids, out)
               ? OK
               : err_set(e, E_RESOURCE, "libsentencepiece cannot encode a text of %zu bytes", n);
}
#endif
