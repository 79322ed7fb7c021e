#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"

#include <pcre2.h>
#include <string.h>

#include "base/arena.h"
#include "text/regex.h"
#include "text/unicode.h"

enum { STACK_START = 32 << 10, STACK_MAX = 64 << 20 };

struct pattern_scratch {
    pcre2_match_data *found;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

struct pattern_scratch *pattern_scratch_open(void)
{
    struct pattern_scratch *s = mem_take(sizeof *s);

    s->found = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    s->stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
    if (!s->found || !s->context)
        die(E_RESOURCE, "no memory for a regular expression's search");
    if (s->stack)
        pcre2_jit_stack_assign(s->context, NULL, s->stack);
    return s;
}

void pattern_scratch_close(struct pattern_scratch *s)
{
    if (!s)
        return;
    pcre2_match_data_free(s->found);
    pcre2_match_context_free(s->context);
    pcre2_jit_stack_free(s->stack);
    mem_give(s);
}

static void keep_text(struct pattern *p, const char *s, size_t n)
{
    p->text = mem_take(n + 1);
    memcpy(p->text, s, n);
    p->n = n;
}

enum status pattern_regex(struct pattern *p, const char *s, size_t n, const char *where,
                          struct err *e)
{
    struct buffer out = { 0 };
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int why = 0;
    PCRE2_SIZE at = 0;
    char text[200] = "no memory";
    enum status st = regex_translate(s, n, where, &out, e);

    if (st == OK && context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        p->code = pcre2_compile((PCRE2_SPTR)out.at, out.n, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                                &why, &at, context);
    }
    if (st == OK && !p->code) {
        pcre2_get_error_message(why, (PCRE2_UCHAR *)text, sizeof text);
        st = err_set(e, E_FILE, "%s: regular expression `%.*s`: %s", where,
                     (int)(n < 300 ? n : 300), s, text);
    }
    if (st == OK) {
        pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without: slower, the same matches */
        keep_text(p, s, n);
        p->kind = PATTERN_REGEX;
    }
    pcre2_compile_context_free(context);
    buffer_free(&out);
    return st;
}

enum status pattern_read(struct pattern *p, const struct part *from, struct err *e)
{
    const char *s;
    size_t n;
    enum status st = part_keys(from, "String Regex", e);

    if (st == OK && json_object_size(from->o) != 1)
        st = err_set(e, E_FILE, "%s: must be one of String, Regex", from->where);
    if (st == OK && (st = part_text(from, "Regex", &s, &n, e)) == OK && s)
        return pattern_regex(p, s, n, from->where, e);
    if (st == OK)
        st = part_need_text(from, "String", &s, &n, e);
    if (st == OK && n == 0)
        st = err_set(e, E_FILE, "%s: an empty text is not supported", from->where);
    if (st != OK)
        return st;
    keep_text(p, s, n);
    p->kind = PATTERN_STRING;
    return OK;
}

/* Expressions of well-known tokenizers. In all of them only a match that begins with a space, or
 * with other spaces, has a space in it. */
#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define SPACES       "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
static const struct known {
    const char *name, *text;
} known[] = {
    { "gpt2", CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
    { "llama3", "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
                "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES },
    { "qwen2", "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
               "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES },
    { "o200k", "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+(?i:" CONTRACTIONS ")?"
               "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*(?i:" CONTRACTIONS ")?"
               "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES },
    { "deepseek", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
                  "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
                  "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+" },
};

enum status pattern_of_name(struct pattern *p, const char *name, const char *where, struct err *e)
{
    for (int i = 0; i < COUNT_OF(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return pattern_regex(p, known[i].text, strlen(known[i].text), where, e);
    return err_set(e, E_INPUT, "%s: no pattern `%.60s` (gpt2, llama3, qwen2, o200k)", where, name);
}

const char *pattern_name(const struct pattern *p)
{
    for (int i = 0; i < COUNT_OF(known); i++)
        if (p->kind == PATTERN_REGEX && strlen(known[i].text) == p->n &&
            memcmp(known[i].text, p->text, p->n) == 0)
            return known[i].name;
    return NULL;
}

int pattern_begins_at_space(const struct pattern *p)
{
    return pattern_name(p) != NULL;
}

void pattern_free(struct pattern *p)
{
    pcre2_code_free(p->code);
    mem_give(p->text);
    *p = (struct pattern){ 0 };
}

static int next_string(struct pattern_search *f)
{
    const char *p = f->text + f->at, *end = f->text + f->n;

    for (; p < end && (p = memchr(p, f->p->text[0], (size_t)(end - p))) != NULL; p++)
        if ((size_t)(end - p) >= f->p->n && memcmp(p, f->p->text, f->p->n) == 0) {
            f->from = (size_t)(p - f->text);
            f->to = f->from + f->p->n;
            return 1;
        }
    return 0;
}

static int next_of_class(struct pattern_search *f)
{
    uint32_t c;
    size_t n;

    for (size_t at = f->at; at < f->n; at += n) {
        n = (size_t)unicode_at(f->text + at, &c);
        if (f->p->classes[c] & f->p->class) {
            f->from = at;
            f->to = at + n;
            return 1;
        }
    }
    return 0;
}

/* \w+|[^\w\s]+ */
static int next_word(struct pattern_search *f)
{
    size_t at = f->at, n;
    uint32_t c;
    int kind = -1;

    for (; at < f->n; at += n) {
        int now;

        n = (size_t)unicode_at(f->text + at, &c);
        now = f->p->classes[c] & UNICODE_WORD ? 1 : f->p->classes[c] & UNICODE_SPACE ? -1 : 0;
        if (kind < 0 && now >= 0)
            f->from = at;
        else if (kind >= 0 && now != kind)
            break;
        kind = now;
    }
    f->to = at;
    return kind >= 0;
}

static int next_of_regex(struct pattern_search *f, struct err *e)
{
    while (f->at <= f->n) {
        PCRE2_SIZE *v = pcre2_get_ovector_pointer(f->s->found);
        int rc = pcre2_match(f->p->code, (PCRE2_SPTR)f->text, f->n, f->at, PCRE2_NO_UTF_CHECK,
                             f->s->found, f->s->context);

        if (rc == PCRE2_ERROR_NOMATCH)
            return 0;
        if (rc < 0) {
            char text[200] = "";

            pcre2_get_error_message(rc, (PCRE2_UCHAR *)text, sizeof text);
            err_set(e, E_RESOURCE, "the tokenizer's regular expression `%.300s`: %s", f->p->text,
                    text);
            return -1;
        }
        f->from = v[0];
        f->to = v[1];
        if (f->from < f->to || !f->any || f->end != f->to)
            return 1;
        f->at += f->at < f->n ? (size_t)unicode_length(f->text[f->at]) : 1;
    }
    return 0;
}

int pattern_next(struct pattern_search *f, struct err *e)
{
    static int (*const plain[])(struct pattern_search *) = {
        [PATTERN_STRING] = next_string,
        [PATTERN_CLASS] = next_of_class,
        [PATTERN_WORDS] = next_word,
    };
    int found = f->p->kind == PATTERN_REGEX ? next_of_regex(f, e) : plain[f->p->kind](f);

    if (found > 0) {
        f->at = f->end = f->to;
        f->any = 1;
    }
    return found;
}
