#include <stdio.h>
#include <string.h>

#include "text/split.h"
#include "text/unicode.h"

static const char *const behaviours[] = { "Removed", "Isolated", "MergedWithPrevious",
                                          "MergedWithNext", "Contiguous" };

static enum status read_choice(const struct part *from, const char *key, const char *const *names,
                               int n, int *v, struct err *e)
{
    const char *s;
    size_t length;
    enum status st = part_text(from, key, &s, &length, e);

    if (st != OK || !s)
        return st;
    for (int i = 0; i < n; i++)
        if (strcmp(s, names[i]) == 0) {
            *v = i;
            return OK;
        }
    return err_set(e, E_FILE, "%s.%s: `%.60s` is not supported", from->where, key, s);
}

static enum status stage_new(struct splitter *s, enum stage_kind kind, const struct part *from,
                             struct stage **g, struct err *e)
{
    *g = NULL;
    if (s->n == STAGES_MAX)
        return err_set(e, E_FILE, "%s: more than %d steps are not supported", from->where,
                       STAGES_MAX);
    *g = &s->stage[s->n++];
    **g = (struct stage){ .kind = kind, .behaviour = CUT_ISOLATED };
    (*g)->pattern.classes = s->classes;
    return OK;
}

static enum status stage_of_class(struct splitter *s, const struct part *from,
                                  enum pattern_kind kind, uint8_t class, enum behaviour b,
                                  struct stage **g, struct err *e)
{
    enum status st = stage_new(s, STAGE_CUT, from, g, e);

    if (st != OK)
        return st;
    (*g)->pattern.kind = kind;
    (*g)->pattern.class = class;
    (*g)->behaviour = b;
    return OK;
}

static enum status read_behaviour(struct stage *g, const struct part *from, struct err *e)
{
    int v = (int)g->behaviour;
    enum status st = read_choice(from, "behavior", behaviours, COUNT_OF(behaviours), &v, e);

    g->behaviour = (enum behaviour)v;
    return st;
}

static enum status read_split(struct splitter *s, const struct part *from, struct err *e)
{
    struct part pattern = part_member(from, "pattern");
    struct stage *g = NULL;
    enum status st = part_keys(from, "type pattern behavior invert", e);

    if (st == OK)
        st = stage_new(s, STAGE_CUT, from, &g, e);
    if (st == OK)
        st = pattern_read(&g->pattern, &pattern, e);
    if (st == OK && !json_object_get(from->o, "behavior"))
        st = err_set(e, E_FILE, "%s: no key `behavior`", from->where);
    if (st == OK)
        st = read_behaviour(g, from, e);
    return st == OK ? part_flag(from, "invert", &g->invert, e) : st;
}

static enum status read_digits(struct splitter *s, const struct part *from, struct err *e)
{
    struct stage *g = NULL;
    int single = 0;
    enum status st = part_keys(from, "type individual_digits", e);

    if (st == OK)
        st = part_flag(from, "individual_digits", &single, e);
    return st == OK ? stage_of_class(s, from, PATTERN_CLASS, UNICODE_DIGIT,
                                     single ? CUT_ISOLATED : CUT_CONTIGUOUS, &g, e)
                    : st;
}

static enum status read_punctuation(struct splitter *s, const struct part *from, struct err *e)
{
    struct stage *g = NULL;
    enum status st = part_keys(from, "type behavior", e);

    if (st == OK)
        st = stage_of_class(s, from, PATTERN_CLASS, UNICODE_PUNCTUATION, CUT_ISOLATED, &g, e);
    return st == OK ? read_behaviour(g, from, e) : st;
}

static enum status read_whitespace(struct splitter *s, const struct part *from, struct err *e)
{
    struct stage *g = NULL;
    enum status st = part_keys(from, "type", e);

    if (st == OK)
        st = stage_of_class(s, from, PATTERN_WORDS, 0, CUT_REMOVED, &g, e);
    if (st == OK)
        g->invert = 1;
    return st;
}

static enum status read_whitespace_split(struct splitter *s, const struct part *from, struct err *e)
{
    struct stage *g = NULL;
    enum status st = part_keys(from, "type", e);

    return st == OK ? stage_of_class(s, from, PATTERN_CLASS, UNICODE_SPACE, CUT_REMOVED, &g, e)
                    : st;
}

static enum status read_byte_level(struct splitter *s, const struct part *from, struct err *e)
{
    int prefix = 0, regex = 1, trim;
    struct stage *g = NULL;
    enum status st = part_keys(from, "type add_prefix_space trim_offsets use_regex", e);

    if (st == OK)
        st = part_flag(from, "add_prefix_space", &prefix, e);
    if (st == OK)
        st = part_flag(from, "trim_offsets", &trim, e); /* of places in the text, not of ids */
    if (st == OK)
        st = part_flag(from, "use_regex", &regex, e);
    if (st == OK && prefix)
        st = stage_new(s, STAGE_PREFIX, from, &g, e);
    if (st == OK && regex) {
        st = stage_new(s, STAGE_CUT, from, &g, e);
        if (st == OK)
            st = pattern_of_name(&g->pattern, "gpt2", from->where, e);
    }
    s->bytes = 1;
    return st;
}

static enum status read_metaspace(struct splitter *s, const struct part *from, struct err *e)
{
    static const char *const schemes[] = { "always", "first", "never" };
    const char *c, *rep;
    size_t n, nrep;
    int split = 1, scheme = SCHEME_ALWAYS, prefix = 1;
    struct stage *g = NULL;
    enum status st =
        part_keys(from, "type replacement add_prefix_space prepend_scheme split str_rep", e);

    if (st == OK)
        st = part_need_text(from, "replacement", &c, &n, e);
    if (st == OK && (n == 0 || n != (size_t)unicode_length(c[0])))
        st = err_set(e, E_FILE, "%s.replacement: must be one character", from->where);
    if (st == OK)
        st = part_text(from, "str_rep", &rep, &nrep, e);
    if (st == OK)
        st = read_choice(from, "prepend_scheme", schemes, COUNT_OF(schemes), &scheme, e);
    if (st == OK)
        st = part_flag(from, "add_prefix_space", &prefix, e);
    if (st == OK && !prefix && scheme != SCHEME_NEVER)
        st = err_set(e, E_FILE, "%s: add_prefix_space is false, but prepend_scheme is not `never`",
                     from->where);
    if (st == OK)
        st = part_flag(from, "split", &split, e);
    if (st == OK)
        st = stage_new(s, STAGE_SPACES, from, &g, e);
    if (st != OK)
        return st;
    g->scheme = (enum scheme)scheme;
    memcpy(g->character, c, n);
    if (!split || (st = stage_new(s, STAGE_CUT, from, &g, e)) != OK)
        return st;
    g->behaviour = CUT_NEXT;
    g->pattern.kind = PATTERN_STRING;
    g->pattern.text = mem_take(n + 1);
    memcpy(g->pattern.text, c, n);
    g->pattern.n = n;
    return OK;
}

static enum status read_part(struct splitter *s, const struct part *from, struct err *e);

static enum status read_sequence(struct splitter *s, const struct part *from, struct err *e)
{
    size_t n = 0;
    enum status st = part_keys(from, "type pretokenizers", e);

    if (st == OK)
        st = part_array(from, "pretokenizers", &n, e);
    for (size_t i = 0; st == OK && i < n; i++) {
        struct part item = part_item(from, "pretokenizers", i);

        st = item.o ? read_part(s, &item, e) : err_set(e, E_FILE, "%s: null", item.where);
    }
    return st;
}

static const struct row {
    const char *name;
    enum status (*read)(struct splitter *s, const struct part *from, struct err *e);
} rows[] = {
    { "Sequence", read_sequence },     { "Split", read_split },
    { "Digits", read_digits },         { "Punctuation", read_punctuation },
    { "Whitespace", read_whitespace }, { "WhitespaceSplit", read_whitespace_split },
    { "ByteLevel", read_byte_level },  { "Metaspace", read_metaspace },
};

static enum status read_part(struct splitter *s, const struct part *from, struct err *e)
{
    const char *type;
    size_t n;
    enum status st = part_need_text(from, "type", &type, &n, e);

    if (st != OK)
        return st;
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(type, rows[i].name) == 0) {
            if (s->bytes && i > 0) { /* a map that is not the last step */
                if (s->n == STAGES_MAX)
                    return err_set(e, E_FILE, "%s: more than %d steps are not supported",
                                   from->where, STAGES_MAX);
                split_map_bytes(s);
            }
            return rows[i].read(s, from, e);
        }
    return part_refuse(from, type,
                       "Split ByteLevel Digits Punctuation Whitespace WhitespaceSplit Metaspace "
                       "Sequence",
                       e);
}

enum status split_read(struct splitter *s, const struct part *from, const uint8_t *classes,
                       int keeps_start, struct err *e)
{
    enum status st = OK;

    s->classes = classes;
    if (from->o)
        st = read_part(s, from, e);
    for (int i = 0; st == OK && i < s->n; i++)
        if (s->stage[i].kind == STAGE_SPACES && s->stage[i].scheme == SCHEME_FIRST &&
            (i > 0 || !keeps_start))
            st = err_set(e, E_FILE,
                         "%s: Metaspace with prepend_scheme `first` is only supported as the first "
                         "step and behind a normalizer that keeps the first character",
                         from->where);
    if (st == OK && s->bytes && s->n == STAGES_MAX)
        st = err_set(e, E_FILE, "%s: more than %d steps are not supported", from->where,
                     STAGES_MAX - 1);
    return st;
}

void split_map_bytes(struct splitter *s)
{
    s->stage[s->n++] = (struct stage){ .kind = STAGE_BYTES };
    s->bytes = 0;
}

void split_free(struct splitter *s)
{
    for (int i = 0; i < s->n; i++)
        pattern_free(&s->stage[i].pattern);
}
