#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/arena.h"
#include "text/tokenizer_impl.h"

static enum status read_parts(struct tokenizer *t, const struct part *top, struct err *e)
{
    struct part model = part_member(top, "model"), normalizer = part_member(top, "normalizer");
    struct part pre_tokenizer = part_member(top, "pre_tokenizer");
    struct part post_processor = part_member(top, "post_processor");
    struct part decoder = part_member(top, "decoder");
    enum status st = normalise_read(&t->normaliser, &normalizer, t->classes, e);

    if (st == OK)
        st = split_read(&t->splitter, &pre_tokenizer, t->classes,
                        normalise_keeps_start(&t->normaliser), e);
    if (st == OK)
        st = model_read(&t->model, &model, t->splitter.bytes, e);
    if (st == OK && t->splitter.bytes && !t->model.bytes)
        split_map_bytes(&t->splitter);
    if (st == OK)
        st = template_read(&t->template, &post_processor, e);
    if (st == OK)
        st = detoken_read(&t->detoken, &decoder, e);
    return st == OK ? tokenizer_read_added(t, top, e) : st;
}

static enum status check_template(const struct tokenizer *t, struct err *e)
{
    const struct ids *both[] = { &t->template.front, &t->template.back };
    size_t n;

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->n; i++)
            if (!tokenizer_text(t, both[k]->at[i], &n))
                return err_set(e, E_FILE, "post_processor: the id %u is no token", both[k]->at[i]);
    return OK;
}

static enum status read_top(struct tokenizer *t, const json_t *o, struct err *e)
{
    static const char *const cuts[] = { "truncation", "padding" };
    struct part top = part_top(o);
    const json_t *version = json_object_get(o, "version");
    enum status st;

    if (!json_is_object(o))
        return err_set(e, E_FILE, "not a tokenizer.json: no object");
    st = part_keys(&top,
                   "version truncation padding added_tokens normalizer pre_tokenizer "
                   "post_processor decoder model",
                   e);
    if (st == OK && version &&
        (!json_is_string(version) || strcmp(json_string_value(version), "1.0") != 0))
        st = err_set(e, E_FILE, "version: only \"1.0\" is supported");
    for (int i = 0; st == OK && i < COUNT_OF(cuts); i++)
        if (part_member(&top, cuts[i]).o)
            st = err_set(e, E_FILE,
                         "%s: texts would be cut or filled up; set it to null to encode with this "
                         "file",
                         cuts[i]);
    if (st == OK)
        st = read_parts(t, &top, e);
    return st == OK ? check_template(t, e) : st;
}

struct tokenizer *tokenizer_new(void)
{
    struct tokenizer *k = mem_take(sizeof *k);

    k->end = -1;
    k->classes = mem_take(UNICODE_POINTS);
    unicode_classes(k->classes);
    return k;
}

static int64_t special_of(const struct tokenizer *t, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t id = tokenizer_id(t, names[i], strlen(names[i]));

        if (id >= 0 && tokenizer_is_special(t, (uint32_t)id))
            return id;
    }
    return -1;
}

static int64_t find_end(const struct tokenizer *t)
{
    static const char *const names[] = {
        "<|endoftext|>", "<|end_of_text|>",
        "</s>",          "<eos>",
        "<|eos|>",       "[EOS]",
        "<EOT>",         "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
    };

    if (t->template.back.n)
        return t->template.back.at[t->template.back.n - 1];
    return special_of(t, names, COUNT_OF(names));
}

enum status tokenizer_finish(struct tokenizer **t, struct tokenizer *k, enum status st)
{
    const struct stage *g = k->splitter.stage;

    if (st != OK) {
        tokenizer_close(k);
        return st;
    }
    k->rewrites = k->normaliser.n > 0 || (k->splitter.n && g->kind != STAGE_CUT);
    k->cuttable = tokenizer_is_cuttable(k);
    if (k->splitter.n == 1 && g->kind == STAGE_CUT && g->behaviour == CUT_ISOLATED)
        k->scan = scan_kind_of(pattern_name(&g->pattern));
    k->cuts = tokenizer_cuts(k);
    if (k->end < 0)
        k->end = find_end(k);
    *t = k;
    return OK;
}

/* Files that are given by mistake. */
static enum status refuse_other(const char *p, size_t n, const json_error_t *why, struct err *e)
{
    const char *space = memchr(p, ' ', n < 400 ? n : 400);

    if (space && space > p && space + 2 < p + n && space[1] >= '0' && space[1] <= '9' &&
        p[0] != '{')
        return err_set(e, E_FILE,
                       "not a tokenizer.json but, as it seems, a rank file of tiktoken; name its "
                       "encoding");
    return err_set(e, E_FILE, "line %d: not a tokenizer.json: %s", why->line, why->text);
}

enum status tokenizer_open(struct tokenizer **t, const void *bytes, size_t n, struct err *e)
{
    json_error_t why;
    json_t *o;
    struct tokenizer *k;
    enum status st;

    *t = NULL;
    if (tokenizer_is_model(bytes, n))
        return tokenizer_open_model(t, bytes, n, e);
    o = json_loadb(bytes, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    if (!o)
        return refuse_other(bytes, n, &why, e);
    k = tokenizer_new();
    st = read_top(k, o, e);
    json_decref(o);
    return tokenizer_finish(t, k, st);
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->nadded; i++)
        mem_give(t->added[i].content);
    mem_give(t->added);
    mem_give(t->by_id);
    mem_give(t->classes);
    finder_free(&t->raw);
    finder_free(&t->normalised);
    buffer_free(&t->forms);
    model_free(&t->model);
    normalise_free(&t->normaliser);
    split_free(&t->splitter);
    template_free(&t->template);
    detoken_free(&t->detoken);
    tokenizer_close_model(t);
    mem_give(t);
}

uint32_t tokenizer_vocab_size(const struct tokenizer *t)
{
    return t->size;
}

int64_t tokenizer_id(const struct tokenizer *t, const char *content, size_t n)
{
    for (int i = 0; i < t->nadded; i++)
        if (t->added[i].n == n && memcmp(t->added[i].content, content, n) == 0)
            return t->added[i].id;
    return strings_find(&t->model.names, content, n);
}

const char *tokenizer_text(const struct tokenizer *t, uint32_t id, size_t *n)
{
    *n = 0;
    if (id >= t->size)
        return NULL;
    if (t->by_id[id]) {
        *n = t->by_id[id]->n;
        return t->by_id[id]->content;
    }
    if (id >= t->model.size || t->model.text[id].n == UINT32_MAX)
        return NULL;
    *n = t->model.text[id].n;
    return t->model.names.pool.at + t->model.text[id].at;
}

int tokenizer_is_special(const struct tokenizer *t, uint32_t id)
{
    return id < t->size && t->by_id[id] && t->by_id[id]->special;
}

/* ---- by name ---- */

int64_t tokenizer_end_of_document(const struct tokenizer *t)
{
    return t->end;
}

int64_t tokenizer_begin_of_text(const struct tokenizer *t)
{
    static const char *const names[] = {
        "<|begin_of_text|>",
        "<s>",
        "<bos>",
        "<|bos|>",
        "[BOS]",
        "<|startoftext|>",
        "<\357\275\234begin\342\226\201of\342\226\201sentence\357\275\234>",
    };

    if (t->template.front.n)
        return t->template.front.at[0];
    return special_of(t, names, COUNT_OF(names));
}

void tokenizer_template(const struct tokenizer *t, size_t *front, size_t *back)
{
    *front = t->template.front.n;
    *back = t->template.back.n;
}

void tokenizer_describe(const struct tokenizer *t, char *text, size_t bytes)
{
    const char *pattern = NULL;
    int64_t end = tokenizer_end_of_document(t);
    size_t n = 0;
    const char *name = end < 0 ? "none" : tokenizer_text(t, (uint32_t)end, &n);

    if (t->spm) {
        snprintf(text, bytes, "SentencePiece model, %u ids, end of document %.60s", t->size, name);
        return;
    }
    for (int i = 0; i < t->splitter.n && !pattern; i++)
        pattern = pattern_name(&t->splitter.stage[i].pattern);
    snprintf(text, bytes, "%s BPE, %u ids (%d added), %lld merges%s%s%s, end of document %.60s",
             t->model.bytes           ? "byte-level"
             : t->model.byte_fallback ? "byte-fallback"
                                      : "character",
             t->size, t->nadded, (long long)t->model.nmerges, pattern ? ", pattern of " : "",
             pattern ? pattern : "", t->normaliser.n ? ", normalised" : "", name);
}

const char *tokenizer_libraries(void)
{
    static char text[80];
    char pcre2[40] = "";

    if (!*text) {
        pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
        pcre2[strcspn(pcre2, " ")] = 0;
        snprintf(text, sizeof text, "PCRE2 %s, utf8proc %s, Unicode 16.0", pcre2,
                 utf8proc_version());
    }
    return text;
}
