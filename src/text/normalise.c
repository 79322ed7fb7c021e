#include "text/normalise.h"

#include <string.h>
#include <utf8proc.h>

#include "text/unicode.h"

/* ---- reading ---- */

static const struct form {
    const char *name;
    int options;
} forms[] = {
    { "NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE },
    { "NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE },
    { "NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT },
    { "NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT },
};

static const char known[] = "NFC NFD NFKC NFKD Prepend Replace Strip Lowercase Sequence";

static enum status read_text(struct step *t, const struct part *from, const char *key,
                             struct err *e)
{
    const char *s;
    size_t n;
    enum status st = part_need_text(from, key, &s, &n, e);

    if (st != OK)
        return st;
    t->text = mem_take(n + 1);
    memcpy(t->text, s, n);
    t->n = n;
    return OK;
}

static enum status read_prepend(struct step *t, const struct part *from, struct err *e)
{
    enum status st = part_keys(from, "type prepend", e);

    t->kind = STEP_PREPEND;
    return st == OK ? read_text(t, from, "prepend", e) : st;
}

static enum status read_replace(struct step *t, const struct part *from, struct err *e)
{
    struct part pattern = part_member(from, "pattern");
    enum status st = part_keys(from, "type pattern content", e);

    t->kind = STEP_REPLACE;
    if (st == OK)
        st = pattern_read(&t->pattern, &pattern, e);
    return st == OK ? read_text(t, from, "content", e) : st;
}

static enum status read_strip(struct step *t, const struct part *from, struct err *e)
{
    enum status st = part_keys(from, "type strip_left strip_right", e);

    t->kind = STEP_STRIP;
    if (st == OK)
        st = part_flag(from, "strip_left", &t->left, e);
    return st == OK ? part_flag(from, "strip_right", &t->right, e) : st;
}

static enum status read_lower(struct step *t, const struct part *from, struct err *e)
{
    t->kind = STEP_LOWER;
    return part_keys(from, "type", e);
}

static const struct step_row {
    const char *name;
    enum status (*read)(struct step *t, const struct part *from, struct err *e);
} step_rows[] = {
    { "Prepend", read_prepend },
    { "Replace", read_replace },
    { "Strip", read_strip },
    { "Lowercase", read_lower },
};

static enum status read_sequence(struct normaliser *m, const struct part *from, struct err *e)
{
    size_t n = 0;
    enum status st = part_keys(from, "type normalizers", e);

    if (st == OK)
        st = part_array(from, "normalizers", &n, e);
    for (size_t i = 0; st == OK && i < n; i++) {
        struct part item = part_item(from, "normalizers", i);

        if (!item.o)
            return err_set(e, E_FILE, "%s: null", item.where);
        st = normalise_read(m, &item, m->classes, e);
    }
    return st;
}

enum status normalise_read(struct normaliser *m, const struct part *from, const uint8_t *classes,
                           struct err *e)
{
    const char *type;
    size_t n;
    struct step *t = &m->step[m->n];
    enum status st;

    m->classes = classes;
    if (!from->o)
        return OK;
    if ((st = part_need_text(from, "type", &type, &n, e)) != OK)
        return st;
    if (strcmp(type, "Sequence") == 0)
        return read_sequence(m, from, e);
    if (m->n == STEPS_MAX)
        return err_set(e, E_FILE, "%s: more than %d steps are not supported", from->where,
                       STEPS_MAX);
    m->n++;
    for (int i = 0; i < COUNT_OF(step_rows); i++)
        if (strcmp(type, step_rows[i].name) == 0)
            return step_rows[i].read(t, from, e);
    for (int i = 0; i < COUNT_OF(forms); i++)
        if (strcmp(type, forms[i].name) == 0) {
            t->kind = STEP_FORM;
            t->form = forms[i].options;
            return part_keys(from, "type", e);
        }
    return part_refuse(from, type, known, e);
}

void normalise_free(struct normaliser *m)
{
    for (int i = 0; i < m->n; i++) {
        mem_give(m->step[i].text);
        pattern_free(&m->step[i].pattern);
    }
}

/* ---- what it does to a text ---- */

/* A literal of one character, no letter, cannot span a cut nor change the letters beside it. */
static int is_local(const struct step *t)
{
    const struct pattern *p = &t->pattern;
    int first = p->kind == PATTERN_STRING ? (unsigned char)p->text[0] | 0x20 : 'a';

    return !(first >= 'a' && first <= 'z') && p->n == (size_t)unicode_length(p->text[0]);
}

int normalise_cuttable(const struct normaliser *m)
{
    for (int i = 0; i < m->n; i++) {
        const struct step *t = &m->step[i];

        if (t->kind == STEP_STRIP || (t->kind == STEP_PREPEND && i > 0) ||
            (t->kind == STEP_REPLACE && !is_local(t)))
            return 0;
    }
    return 1;
}

int normalise_keeps_lines(const struct normaliser *m)
{
    for (int i = 0; i < m->n; i++) /* NFKC makes spaces of characters that are none */
        if (m->step[i].kind != STEP_FORM || m->step[i].form & UTF8PROC_COMPAT)
            return 0;
    return 1;
}

int normalise_keeps_start(const struct normaliser *m)
{
    for (int i = 0; i < m->n; i++) {
        const struct step *t = &m->step[i];

        if ((t->kind == STEP_STRIP && t->left) || t->kind == STEP_PREPEND)
            return 0;
        if (t->kind == STEP_REPLACE && (t->pattern.kind != PATTERN_STRING || t->n == 0 ||
                                        t->pattern.n != (size_t)unicode_length(t->pattern.text[0])))
            return 0;
    }
    return 1;
}

static size_t ascii_run(const char *text, size_t n)
{
    size_t i = 0;
    uint64_t eight;

    for (; i + 8 <= n; i += 8) {
        memcpy(&eight, text + i, 8);
        if (eight & 0x8080808080808080u)
            break;
    }
    while (i < n && !(text[i] & 0x80))
        i++;
    return i;
}

/* Characters below U+0300 are composed in NFC; Han, kana without marks and Hangul syllables too. */
static int is_composed(uint32_t c)
{
    return c < 0x300 || (c >= 0x4e00 && c < 0xa000) || (c >= 0x3001 && c < 0x3099) ||
           (c >= 0x30a0 && c < 0x3100) || (c >= 0xac00 && c < 0xd7a4) ||
           (c >= 0x2010 && c < 0x2080) || (c >= 0xff01 && c < 0xffa0);
}

static int form_is_idle(const struct step *t, const char *text, size_t n)
{
    uint32_t c;

    for (size_t i = 0;;) {
        i += ascii_run(text + i, n - i);
        if (i >= n)
            return 1;
        if (t->form != forms[0].options)
            return 0;
        i += (size_t)unicode_at(text + i, &c);
        if (!is_composed(c))
            return 0;
    }
}

int normalise_is_idle(const struct normaliser *m, const char *text, size_t n, int first)
{
    for (int i = 0; i < m->n; i++) {
        const struct step *t = &m->step[i];

        if (t->kind == STEP_FORM ? !form_is_idle(t, text, n) : t->kind != STEP_PREPEND || first)
            return 0;
    }
    return 1;
}

/* ---- the steps ---- */

static void form_piece(const struct step *t, const char *text, size_t n, struct buffer *to)
{
    utf8proc_int32_t *points;
    utf8proc_ssize_t k;

    if (ascii_run(text, n) == n) {
        buffer_add(to, text, n);
        return;
    }
    k = utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, NULL, 0,
                           (utf8proc_option_t)t->form);
    BUG_IF(k < 0);
    points = mem_take((size_t)(k + 1) * sizeof *points);
    k = utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, points, k,
                           (utf8proc_option_t)t->form);
    BUG_IF(k < 0);
    k = utf8proc_normalize_utf32(points, k, (utf8proc_option_t)t->form);
    BUG_IF(k < 0);
    for (utf8proc_ssize_t i = 0; i < k; i++) {
        char p[4];

        buffer_add(to, p, (size_t)unicode_put((uint32_t)points[i], p));
    }
    mem_give(points);
}

/* In no form does this character change or join another; utf8proc up to 2.8 loses it behind a
 * syllable: it is where the counting of trailing consonants begins, not one of them. */
enum { HANGUL_NO_TRAIL = 0x11a7 };

/* A piece ends before an ASCII character, once it is long, and at characters that the forms leave
 * alone: most are newer than the Unicode of the reference. */
static void run_form(const struct normaliser *m, const struct step *t, const char *text, size_t n,
                     struct buffer *to)
{
    size_t from = 0, at = 0;
    uint32_t c;

    while (at < n) {
        size_t k = (size_t)unicode_at(text + at, &c);

        if (c >= 0x80 ? m->classes[c] & UNICODE_INERT || c == HANGUL_NO_TRAIL : at - from > 4096) {
            form_piece(t, text + from, at - from, to);
            from = at;
            if (c >= 0x80) {
                buffer_add(to, text + at, k);
                from += k;
            }
        }
        at += k;
    }
    form_piece(t, text + from, n - from, to);
}

static enum status run_replace(const struct step *t, struct pattern_scratch *s, const char *text,
                               size_t n, struct buffer *to, struct err *e)
{
    struct pattern_search f = { .p = &t->pattern, .s = s, .text = text, .n = n };
    size_t done = 0;
    int found;

    while ((found = n ? pattern_next(&f, e) : 0) > 0) {
        buffer_add(to, text + done, f.from - done);
        buffer_add(to, t->text, t->n);
        done = f.to;
    }
    buffer_add(to, text + done, n - done);
    return found < 0 ? E_RESOURCE : OK;
}

static void run_strip(const struct normaliser *m, const struct step *t, const char *text, size_t n,
                      struct buffer *to)
{
    size_t from = 0;
    uint32_t c;

    while (t->left && from < n) {
        size_t k = (size_t)unicode_at(text + from, &c);

        if (!(m->classes[c] & UNICODE_SPACE))
            break;
        from += k;
    }
    while (t->right && n > from) {
        size_t before = unicode_before(text, n);

        unicode_at(text + before, &c);
        if (!(m->classes[c] & UNICODE_SPACE))
            break;
        n = before;
    }
    buffer_add(to, text + from, n - from);
}

static void run_lower(const char *text, size_t n, struct buffer *to)
{
    for (size_t at = 0; at < n;) {
        uint32_t c, low[2];
        char p[4];

        at += (size_t)unicode_at(text + at, &c);
        for (int i = 0, k = unicode_lower(c, low); i < k; i++)
            buffer_add(to, p, (size_t)unicode_put(low[i], p));
    }
}

static enum status run_step(const struct normaliser *m, const struct step *t,
                            struct pattern_scratch *s, const char *text, size_t n, int first,
                            struct buffer *to, struct err *e)
{
    to->n = 0;
    switch (t->kind) {
    case STEP_FORM:
        run_form(m, t, text, n, to);
        break;
    case STEP_PREPEND:
        if (first && n)
            buffer_add(to, t->text, t->n);
        buffer_add(to, text, n);
        break;
    case STEP_REPLACE:
        return run_replace(t, s, text, n, to, e);
    case STEP_STRIP:
        run_strip(m, t, text, n, to);
        break;
    default:
        run_lower(text, n, to);
    }
    return OK;
}

enum status normalise_run(const struct normaliser *m, struct pattern_scratch *s, const char *text,
                          size_t n, int first, struct buffer *to, struct buffer *spare,
                          struct err *e)
{
    enum status st = OK;

    to->n = 0;
    if (m->n == 0)
        buffer_add(to, text, n);
    for (int i = 0; i < m->n && st == OK; i++) {
        struct buffer swap;

        st = run_step(m, &m->step[i], s, i ? to->at : text, i ? to->n : n, first, spare, e);
        swap = *spare;
        *spare = *to;
        *to = swap;
    }
    return st;
}
