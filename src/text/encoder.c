#include "text/encoder.h"

#include "base/arena.h"
#include "text/encoder_impl.h"
#include "text/utf8.h"

enum {
    WINDOW = 1 << 18 /* a text that is copied on its way goes in parts of about so many bytes */
};

struct encoder *encoder_open(const struct tokenizer *t)
{
    struct encoder *c = mem_take(sizeof *c);

    c->t = t;
    c->split.pattern = pattern_scratch_open();
    words_open(&c->words);
    encoder_seed(c);
    scan_open(&c->scan, t->scan, t->classes);
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
    scan_free(&c->scan);
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

/* ---- texts ---- */

static enum status add_token(struct encoder *c, const struct added_token *a, struct err *e)
{
    c->specials += a->special;
    ids_add(c->out, a->id);
    return encoder_flush(c, SINK_IDS, e);
}

static int is_taken(const struct encoder *c, const struct added_token *a)
{
    return !(c->specials_as_text && a->special);
}

/* Text without added tokens, normalised. */
static enum status encode_plain(struct encoder *c, const char *text, size_t n, int begin, int first,
                                struct err *e)
{
    return c->scan.kind
               ? encoder_scan(c, text, n, e)
               : split_run(&c->t->splitter, &c->split, text, n, begin, first, encoder_piece, c, e);
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
            st = encode_plain(c, text + g.done, g.from - g.done, begin || g.done,
                              first && g.done == 0, e);
        if (st == OK)
            st = add_token(c, g.token, e);
        g.done = g.to;
    }
    if (st == OK && g.done < n)
        st = encode_plain(c, text + g.done, n - g.done, begin || g.done, first && g.done == 0, e);
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

/* Text between added tokens. begin: not the rest of one; first: at the begin of the whole. */
static enum status encode_segment(struct encoder *c, const char *text, size_t n, int begin,
                                  int first, struct err *e)
{
    enum status st = OK;

    if (!c->t->rewrites || !c->t->cuttable)
        return encode_part(c, text, n, begin, first, e);
    for (size_t at = 0, to; at < n && st == OK; at = to) {
        to = window_end(text, n, at);
        st = encode_part(c, text + at, to - at, begin && at == 0, first && at == 0, e);
    }
    return st;
}

static enum status encode_text(struct encoder *c, const char *text, size_t n, int first,
                               struct err *e)
{
    struct finding g = { .f = &c->t->raw, .classes = c->t->classes, .text = text, .n = n };
    enum status st = OK;

    while (st == OK && finder_next(&g)) {
        if (!is_taken(c, g.token))
            continue;
        if (g.from > g.done)
            st = encode_segment(c, text + g.done, g.from - g.done, first || g.done,
                                first && g.done == 0, e);
        if (st == OK)
            st = add_token(c, g.token, e);
        g.done = g.to;
    }
    if (st == OK && g.done < n)
        st = encode_segment(c, text + g.done, n - g.done, first || g.done, first && g.done == 0, e);
    return st;
}

static void add_ids(struct ids *out, const struct ids *more)
{
    for (size_t i = 0; i < more->n; i++)
        ids_add(out, more->at[i]);
}

enum { FIRST = 1, FRONT = 2, BACK = 4 }; /* begins the text; has the template's ids */

static enum status encode_all(struct encoder *c, const char *text, size_t n, int what,
                              struct err *e)
{
    struct utf8_check u = { 0 };
    enum status st;

    if (utf8_check_add(&u, text, n) || utf8_check_end(&u))
        return err_set(e, E_FILE, "the text is not UTF-8 at byte %lld; convert it (iconv)",
                       (long long)u.at + 1);
    if (what & FRONT)
        add_ids(c->out, &c->t->template.front);
    st = c->t->spm ? tokenizer_encode_model(c->t, text, n, c->out, e)
                   : encode_text(c, text, n, what & FIRST, e);
    if (st == OK && what & BACK)
        add_ids(c->out, &c->t->template.back);
    return st == OK ? encoder_flush(c, 1, e) : st;
}

enum status encoder_encode(struct encoder *c, const char *text, size_t n, int add_special,
                           struct ids *out, struct err *e)
{
    c->out = out;
    c->sink = NULL;
    return encode_all(c, text, n, FIRST | (add_special ? FRONT | BACK : 0), e);
}

enum status encoder_part(struct encoder *c, const char *text, size_t n, int first, int last,
                         struct ids *out, struct err *e)
{
    c->out = out;
    c->sink = NULL;
    return encode_all(c, text, n, (first ? FIRST | FRONT : 0) | (last ? BACK : 0), e);
}

enum status encoder_stream(struct encoder *c, const char *text, size_t n, int add_special,
                           encoder_sink *sink, void *to, struct err *e)
{
    c->own.n = 0;
    c->out = &c->own;
    c->sink = sink;
    c->to = to;
    return encode_all(c, text, n, FIRST | (add_special ? FRONT | BACK : 0), e);
}
