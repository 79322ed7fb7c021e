#include "text/decoder.h"

#include "base/arena.h"
#include "text/tokenizer_impl.h"

struct decoder {
    const struct tokenizer *t;
    int skip_special;
    struct detoken_state state;
};

struct decoder *decoder_open(const struct tokenizer *t, int skip_special)
{
    struct decoder *d = mem_take(sizeof *d);

    d->t = t;
    d->skip_special = skip_special;
    d->state.scratch = pattern_scratch_open();
    return d;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    detoken_state_free(&d->state);
    mem_give(d);
}

enum status decoder_add(struct decoder *d, uint32_t id, struct buffer *out, struct err *e)
{
    size_t n;
    const char *text = tokenizer_text(d->t, id, &n);

    const struct added_token *a = text ? d->t->by_id[id] : NULL;

    if (!text || (d->skip_special && tokenizer_is_special(d->t, id)))
        return OK;
    if (a && a->normalised) { /* it took what the normaliser made of it */
        text = d->t->forms.at + a->form_at;
        n = a->form_n;
    }
    return detoken_add(&d->t->detoken, &d->state, text, n, a != NULL, out, e);
}

enum status decoder_end(struct decoder *d, struct buffer *out, struct err *e)
{
    return detoken_end(&d->t->detoken, &d->state, out, e);
}

enum status decoder_decode(struct decoder *d, const uint32_t *ids, size_t n, struct buffer *out,
                           struct err *e)
{
    enum status st = OK;

    for (size_t i = 0; i < n && st == OK; i++)
        st = decoder_add(d, ids[i], out, e);
    return st == OK ? decoder_end(d, out, e) : st;
}
