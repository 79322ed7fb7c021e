#include "text/encoder.h"

#include "base/arena.h"
#include "text/merger.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"
#include "text/words.h"

enum {
    WINDOW = 1 << 18, /* a text that is copied on its way goes in parts of about so many bytes */
    SINK_IDS = 1 << 16,
    UNCUT = 96 /* longer pieces are cut where no merge can span the cut */
};

struct encoder {
    const struct tokenizer *t;
    struct split_scratch split;
    struct merger merger;
    struct words words;
    struct buffer form, spare; /* normalised text */
    struct ids own, *out;
    encoder_sink *sink;
    void *to;
    int specials_as_text;
    int64_t specials;
};

struct encoder *encoder_open(const struct tokenizer *t)
{
    struct encoder *c = mem_take(sizeof *c);

    c->t = t;
    c->split.pattern = pattern_scratch_open();
    words_open(&c->words);
    return c;
}

void encoder_close(struct encoder *c)
{
    if (!c)
        return;
    pattern_scratch_close(c->split.pattern);
    for (int i = 0; i < STAGES_MAX; i++)
        buffer_free(&c->split.rewritten[i]);
    merger_free(&c->merger);
    words_close(&c->words);
    buffer_free(&c->form);
    buffer_free(&c->spare);
    ids_free(&c->own);
    mem_give(c);
}

void encoder_set_specials_as_text(struct encoder *c, int on)
{
    c->specials_as_text = on;
}

int64_t encoder_specials_found(const struct encoder *c)
{
    return c->specials;
}

/* ---- pieces ---- */

static enum status flush(struct encoder *c, size_t at_least, struct err *e)
{
    enum status st = OK;

    if (c->sink && c->out->n >= at_least && c->out->n > 0) {
        st = c->sink(c->to, c->out->at, c->out->n, e);
        c->out->n = 0;
    }
    return st;
}

/* A piece that `words` does not know. */
static enum status encode_new(struct encoder *c, const char *p, size_t n, struct err *e)
{
    size_t before = c->out->n;
    enum status st = merger_run(&c->t->model, &c->merger, p, n, c->out, e);

    if (st == OK && n <= WORDS_LONG)
        words_put(&c->words, p, n, c->out->at + before, c->out->n - before);
    return st;
}

static enum status encode_in_parts(struct encoder *c, const char *p, size_t n, struct err *e)
{
    const struct model *m = &c->t->model;
    enum status st = OK;

    for (size_t at = 0; at < n && st == OK;) {
        size_t to = at + merger_border(m, p + at, n - at, 0);

        if (m->ignore_merges) /* `words` would take a part for a whole piece */
            st = merger_run(m, &c->merger, p + at, to - at, c->out, e);
        else if (to - at > WORDS_LONG || !words_get(&c->words, p + at, to - at, c->out))
            st = encode_new(c, p + at, to - at, e);
        at = to;
        if (st == OK)
            st = flush(c, SINK_IDS, e);
    }
    return st;
}

/* A split_fn. */
static enum status encode_piece(void *to, const char *p, size_t n, struct err *e)
{
    struct encoder *c = to;
    const struct model *m = &c->t->model;
    int64_t id = -1;
    enum status st = OK;

    if (n <= WORDS_LONG && words_get(&c->words, p, n, c->out))
        return flush(c, SINK_IDS, e);
    if (m->ignore_merges)
        id = strings_find(m->bytes ? &m->raw : &m->names, p, n);
    if (id >= 0) {
        uint32_t one = (uint32_t)id;

        ids_add(c->out, one);
        if (n <= WORDS_LONG)
            words_put(&c->words, p, n, &one, 1);
    } else {
        st = n > UNCUT ? encode_in_parts(c, p, n, e) : encode_new(c, p, n, e);
    }
    return st == OK ? flush(c, SINK_IDS, e) : st;
}

/* ---- texts ---- */

static enum status add_token(struct encoder *c, const struct added_token *a, struct err *e)
{
    c->specials += a->special;
    ids_add(c->out, a->id);
    return flush(c, SINK_IDS, e);
}

static int is_taken(const struct encoder *c, const struct added_token *a)
{
    return !(c->specials_as_text && a->special);
}

/* A normalised text. */
static enum status encode_form(struct encoder *c, const char *text, size_t n, int begin, int first,
                               struct err *e)
{
    const struct tokenizer *t = c->t;
    struct finding g = { .f = &t->normalised, .classes = t->classes, .text = text, .n = n };
    enum status st = OK;

    while (st == OK && finder_next(&g)) {
        if (!is_taken(c, g.token))
            continue;
        if (g.from > g.done)
            st = split_run(&t->splitter, &c->split, text + g.done, g.from - g.done, begin || g.done,
                           first && g.done == 0, encode_piece, c, e);
        if (st == OK)
            st = add_token(c, g.token, e);
        g.done = g.to;
    }
    if (st == OK && g.done < n)
        st = split_run(&t->splitter, &c->split, text + g.done, n - g.done, begin || g.done,
                       first && g.done == 0, encode_piece, c, e);
    return st;
}

static enum status encode_part(struct encoder *c, const char *text, size_t n, int begin, int first,
                               struct err *e)
{
    const struct normaliser *m = &c->t->normaliser;
    enum status st;

    if (normalise_is_idle(m, text, n, begin))
        return encode_form(c, text, n, begin, first, e);
    st = normalise_run(m, c->split.pattern, text, n, begin, &c->form, &c->spare, e);
    return st == OK ? encode_form(c, c->form.at, c->form.n, begin, first, e) : st;
}

static int is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* Behind some WINDOW bytes, a space between letters. */
static size_t window_end(const char *text, size_t n, size_t at)
{
    for (at = n - at > WINDOW ? at + WINDOW : n; at + 1 < n; at++)
        if (text[at] == ' ' && is_letter(text[at - 1]) && is_letter(text[at + 1]))
            return at;
    return n;
}

/* Text between added tokens. first: at the begin of the whole. */
static enum status encode_segment(struct encoder *c, const char *text, size_t n, int first,
                                  struct err *e)
{
    enum status st = OK;

    if (!c->t->rewrites || !c->t->cuttable)
        return encode_part(c, text, n, 1, first, e);
    for (size_t at = 0, to; at < n && st == OK; at = to) {
        to = window_end(text, n, at);
        st = encode_part(c, text + at, to - at, at == 0, first && at == 0, e);
    }
    return st;
}

static enum status encode_text(struct encoder *c, const char *text, size_t n, struct err *e)
{
    struct finding g = { .f = &c->t->raw, .classes = c->t->classes, .text = text, .n = n };
    enum status st = OK;

    while (st == OK && finder_next(&g)) {
        if (!is_taken(c, g.token))
            continue;
        if (g.from > g.done)
            st = encode_segment(c, text + g.done, g.from - g.done, g.done == 0, e);
        if (st == OK)
            st = add_token(c, g.token, e);
        g.done = g.to;
    }
    if (st == OK && g.done < n)
        st = encode_segment(c, text + g.done, n - g.done, g.done == 0, e);
    return st;
}

static void add_ids(struct ids *out, const struct ids *more)
{
    for (size_t i = 0; i < more->n; i++)
        ids_add(out, more->at[i]);
}

static enum status encode_all(struct encoder *c, const char *text, size_t n, int add_special,
                              struct err *e)
{
    struct utf8_check u = { 0 };
    enum status st;

    if (utf8_check_add(&u, text, n) || utf8_check_end(&u))
        return err_set(e, E_FILE, "the text is not UTF-8 at byte %lld; convert it (iconv)",
                       (long long)u.at + 1);
    if (add_special)
        add_ids(c->out, &c->t->template.front);
    st = encode_text(c, text, n, e);
    if (st == OK && add_special)
        add_ids(c->out, &c->t->template.back);
    return st == OK ? flush(c, 1, e) : st;
}

enum status encoder_encode(struct encoder *c, const char *text, size_t n, int add_special,
                           struct ids *out, struct err *e)
{
    c->out = out;
    c->sink = NULL;
    return encode_all(c, text, n, add_special, e);
}

enum status encoder_stream(struct encoder *c, const char *text, size_t n, int add_special,
                           encoder_sink *sink, void *to, struct err *e)
{
    c->own.n = 0;
    c->out = &c->own;
    c->sink = sink;
    c->to = to;
    return encode_all(c, text, n, add_special, e);
}
