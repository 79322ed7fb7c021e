#include "input/config.h"

#include "base/arena.h"
#include "base/file.h"
#include "input/config_table.h"
#include "input/namelist.h"

#include <stdio.h>
#include <string.h>

enum { DECK_MAX = 1 << 20 }; /* bytes; a larger file is no deck */

#define REQUIRED(example)       TABLE_REQUIRED example
#define REQUIRED_SHAPE(example) TABLE_REQUIRED_SHAPE example

static const struct table_group groups[] = {
#define LATER(group, name)
#define LATER_GROUP(name, times, help) { #name, 1, 0, 0, 1, help, 0, 0 },
#define GROUP(name, times, help)       GROUP_##times(name, help)
#define GROUP_ONCE(name, help)         { #name, 1, 0, 0, 0, help, 0, 0 },
#define GROUP_MANY(name, help)                                                                \
    { #name, CONFIG_MANY, sizeof(struct config_##name),  offsetof(struct config, n##name##s), \
      0,     help,        offsetof(struct config, name), offsetof(struct config_##name, line) },
#define END_GROUP(name, times)
#define KEY(group, name, type, def, lo, hi, unit, resume, choices, aliases, help)
#include "input/keys.def"
#undef LATER
#undef LATER_GROUP
#undef GROUP
#undef KEY
};

static const struct table_key keys[] = {
#define LATER(group, name)
#define LATER_GROUP(name, times, help)
#define GROUP(name, times, help)
#define KEY(group, name, type, def, lo, hi, unit, resume, choices, aliases, help) \
    { #group, #name,          TABLE_##type, def,     lo,   hi,                    \
      unit,   TABLE_##resume, choices,      aliases, help, offsetof(struct config, group.name) },
#include "input/keys.def"
#undef LATER
#undef LATER_GROUP
#undef KEY
};

static const struct table_later later[] = {
#define LATER(group, name) { #group, #name },
#define LATER_GROUP(name, times, help)
#define KEY(group, name, type, def, lo, hi, unit, resume, choices, aliases, help)
#include "input/keys.def"
};

const struct table config_table = {
    groups, COUNT_OF(groups), keys, COUNT_OF(keys), later, COUNT_OF(later),
};

const void *config_value(const struct config *c, int key)
{
    return (const char *)c + keys[key].at;
}

int config_given(const struct config *c, const char *group, const char *key)
{
    const struct table_key *k = table_find(&config_table, group, key, strlen(key));

    BUG_IF(!k);
    return c->given[k - keys];
}

/* Length of the last part of a path, *start its first byte. */
static size_t last_part(const char *path, size_t *start)
{
    size_t end = strlen(path);

    while (end > 1 && path[end - 1] == '/')
        end--;
    for (*start = end; *start > 0 && path[*start - 1] != '/';)
        --*start;
    return end - *start;
}

int64_t config_longest_sequence(const struct config *c)
{
    int64_t S = c->train.sequence_length;

    for (int i = 0; i < c->nstages; i++)
        S = max_i64(S, c->stages[i].sequence_length);
    return S;
}

void config_resolve(struct config *c)
{
    size_t start, n = last_part(c->run.directory, &start);

    if (!c->run.name[0])
        snprintf(c->run.name, sizeof c->run.name, "%.*s", (int)n, c->run.directory + start);
    if (!c->model.num_key_value_heads)
        c->model.num_key_value_heads = c->model.num_attention_heads;
    if (!c->model.head_dim && c->model.num_attention_heads)
        c->model.head_dim = c->model.hidden_size / c->model.num_attention_heads;
    if (!c->model.max_position_embeddings)
        c->model.max_position_embeddings = config_longest_sequence(c);
}

/* Required keys that are absent, all in one complaint. */
static void check_required(const struct config *c, struct reading *r, const struct source *deck)
{
    struct table_mark *marks = r->marks;
    char list[300] = "";
    size_t used = 0;
    int shape = 0;

    for (int i = 0; i < CONFIG_KEYS; i++) {
        int need_shape = keys[i].def[0] == TABLE_REQUIRED_SHAPE[0];

        if (marks[i].given || marks[i].bad ||
            (!need_shape && keys[i].def[0] != TABLE_REQUIRED[0]) ||
            (need_shape && (c->model.init_from[0] || marks[KEY_model_init_from].bad)) ||
            (i == KEY_data_train && c->nsources > 0))
            continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s.%s", used ? ", " : "",
                                 keys[i].group, keys[i].name);
        shape |= need_shape;
        marks[i].bad = 1;
    }
    if (used)
        complaint_add_line(r->complaints, deck, 0, 0, "required, but not given: %s%s", list,
                           shape ? " (or model.init_from for those of &model)" : "");
}

/* What the struct keeps of the marks. */
static void keep_marks(struct config *c, const struct table_mark *marks, const struct source *sets)
{
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct table_mark *m = &marks[i];

        c->given[i] = (unsigned char)m->given;
        if (!m->given)
            continue;
        memcpy(c->literal[i], m->literal, sizeof c->literal[i]);
        if (m->source->is_set)
            c->place[i].line = -1 - (int)(m->source - sets);
        else
            complaint_locate(m->source, m->at, &c->place[i].line, &c->place[i].column);
    }
}

/* Deck and --set through the table into *c. */
static void read_all(struct reading *r, struct config *c, const struct source *deck,
                     const struct source *sets, int nsets)
{
    memset(c, 0, sizeof *c);
    snprintf(c->deck, sizeof c->deck, "%s", deck->name);
    table_set_defaults(&config_table, (char *)c, 0);
    namelist_read(r, deck);
    for (int i = 0; i < nsets; i++)
        namelist_read_set(r, &sets[i]);
    for (int g = 0; nsets && g < COUNT_OF(groups); g++)
        reading_close_group(r, g);
    check_required(c, r, deck);
    keep_marks(c, r->marks, sets);
}

static enum status parse(struct config *c, const char *text, size_t n, const char *name,
                         char *const *sets, int nsets, int quiet, struct err *e)
{
    size_t mark_bytes = (size_t)CONFIG_KEYS * sizeof(struct table_mark);
    struct complaints *complaints = mem_take(sizeof *complaints);
    struct table_mark *marks = mem_take(mark_bytes);
    struct source *set = mem_take((size_t)(nsets + 1) * sizeof *set);
    struct source deck = { name, text, n, 0 };
    int seen[COUNT_OF(groups)] = { 0 };
    struct reading r = { &config_table, (char *)c, marks, seen, complaints };
    enum status st;

    complaints->quiet = quiet;
    for (int i = 0; i < nsets; i++) {
        char *shown = mem_take(strlen(sets[i]) + 8);

        sprintf(shown, "--set %s", sets[i]);
        set[i] = (struct source){ shown, sets[i], strlen(sets[i]), 1 };
    }
    read_all(&r, c, &deck, set, nsets);
    if (!quiet)
        config_rules_run(c, marks, &deck, complaints);
    st = complaints_report(complaints, e);
    if (st == OK && !c->model.init_from[0])
        config_resolve(c);
    for (int i = 0; i < nsets; i++)
        mem_give((char *)set[i].name);
    mem_give(set);
    mem_give(marks);
    mem_give(complaints);
    return st;
}

enum status config_parse(struct config *c, const char *text, size_t n, const char *name,
                         char *const *sets, int nsets, struct err *e)
{
    return parse(c, text, n, name, sets, nsets, 0, e);
}

enum status config_parse_quiet(struct config *c, const char *text, size_t n, const char *name,
                               struct err *e)
{
    return parse(c, text, n, name, NULL, 0, 1, e);
}

enum status config_read(struct config *c, const char *path, char *const *sets, int nsets,
                        struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    enum status st;

    if (file_read_text(path, DECK_MAX, &text, &n, e) != OK)
        return E_INPUT;
    st = config_parse(c, text, n, path, sets, nsets, e);
    mem_give(text);
    return st;
}

struct config_word config_word(enum config_key key, int value)
{
    struct config_word w = { "" };
    char buf[CONFIG_DECK];
    int absent;

    if (table_choice(&config_table.keys[key], value, &absent, buf))
        snprintf(w.s, sizeof w.s, "%.15s", buf);
    return w;
}

int config_choice(enum config_key key, const char *word)
{
    const char *s;
    char buf[CONFIG_DECK];
    int absent;

    for (int i = 0; (s = table_choice(&config_table.keys[key], i, &absent, buf)); i++)
        if (strcmp(s, word) == 0)
            return absent ? -1 : i;
    return -1;
}
