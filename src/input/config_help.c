#include "input/config_table.h"

#include "base/arena.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { DECK_COLUMN = 36, HELP_COLUMN = 44 };

static const char *const type_names[] = {
    "integer", "real", "logical", "text", "one of", "integers", "reals", "texts",
};
static const char *const resume_names[] = { "fixed", "announced", "free", "fixed once used" };
static const char *const resume_meanings[] = {
    "fixed: a change is refused",
    "announced: may change, and the log says so",
    "free: may change",
    "fixed once used: what the steps made so far used is fixed, the rest may change",
};

static const struct table_key *key_at(int i)
{
    return &config_table.keys[i];
}

static int is_required(const struct table_key *k)
{
    return table_example(k) != k->def;
}

static int is_quoted(const struct table_key *k)
{
    return k->type == TABLE_TEXT || k->type == TABLE_TEXTS || k->type == TABLE_CHOICE;
}

static void put_default(struct text *out, const struct table_key *k)
{
    const char *quote = is_quoted(k) ? "'" : "";

    if (is_required(k))
        text_put(out, "%s", k->def[0] == TABLE_REQUIRED[0] ? "required" : "required, or init_from");
    else
        text_put(out, "%s%s%s", quote, k->def, quote);
}

/* "'a', 'b'"; with all, also what is not in this build. */
static void put_choices(struct text *out, const struct table_key *k, int all)
{
    char name[CONFIG_DECK];
    int later;

    for (int i = 0; table_choice(k, i, &later, name); i++)
        if (!later || all)
            text_put(out, "%s'%s'%s", i ? ", " : "", name, later ? " (not in this build)" : "");
}

/* "1 to 64 ranks", "'a', 'b'", "" */
static void put_range(struct text *out, const struct table_key *k, int all)
{
    char range[80];

    if (k->type == TABLE_CHOICE) {
        put_choices(out, k, all);
        return;
    }
    table_range(k, range, sizeof range);
    text_put(out, "%s%s%s", range, *range && *k->unit ? " " : "", k->unit);
}

static const struct table_group *group_of(const struct table_key *k)
{
    return &config_table.groups[table_group_index(&config_table, k->group, strlen(k->group))];
}

/* ---- a deck ---- */

/* A group that may be repeated is absent by default: a comment. */
static const char *many_mark(const struct table_key *k)
{
    return group_of(k)->most > 1 ? "!" : "";
}

static void put_deck_key(struct text *out, const struct config *c, int i)
{
    const struct table_key *k = key_at(i);
    struct text note = { 0 };

    text_put(out, "%s  %s%s = ", many_mark(k), config_key_is_idle(c, i) ? "! " : "", k->name);
    config_put_value(out, c, i);
    text_pad(out, DECK_COLUMN);
    text_put(out, " !");
    text_put(&note, "%s%s [", is_required(k) ? "required: " : "", k->help);
    put_range(&note, k, 0);
    if (note.s[note.n - 1] == '[') /* no range */
        note.s[note.n - 2] = 0;
    else
        text_put(&note, "]");
    text_wrap(out, DECK_COLUMN, " !  ", note.s);
    text_put(out, "\n");
    mem_give(note.s);
}

char *config_defaults_text(void)
{
    struct config *c = mem_take(sizeof *c);
    struct text out = { 0 };

    table_set_defaults(&config_table, (char *)c, 1);
    text_put(&out, "! Every key with its default; required ones with an example. Remove what you "
                   "do not need.\n");
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct table_key *k = key_at(i);

        if (i == 0 || strcmp(k->group, k[-1].group)) {
            text_put(&out, "%s%s\n%s&%s", i ? many_mark(k - 1) : "", i ? "/\n" : "", many_mark(k),
                     k->group);
            text_pad(&out, DECK_COLUMN);
            text_put(&out, " ! %s\n", group_of(k)->help);
        }
        put_deck_key(&out, c, i);
    }
    text_put(&out, "%s/\n", many_mark(key_at(CONFIG_KEYS - 1)));
    mem_give(c);
    return out.s;
}

void config_print_defaults(void)
{
    char *s = config_defaults_text();

    fputs(s, stdout);
    mem_give(s);
}

/* ---- help ---- */

static void put_row(struct text *out, int i)
{
    const struct table_key *k = key_at(i);

    text_put(out, "  %-24s ", k->name);
    put_default(out, k);
    text_pad(out, HELP_COLUMN);
    text_wrap(out, HELP_COLUMN, "", k->help);
    text_put(out, "\n");
}

static void put_group(struct text *out, int g)
{
    const char *name = config_table.groups[g].name;

    text_put(out, "&%s: %s\n", name, config_table.groups[g].help);
    if (config_table.groups[g].later)
        text_put(out, "  not in this build\n");
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (strcmp(key_at(i)->group, name) == 0)
            put_row(out, i);
}

static void put_detail(struct text *out, int i)
{
    const struct table_key *k = key_at(i);

    text_put(out, "%s in &%s:", k->name, k->group);
    text_wrap(out, 1, "", k->help);
    text_put(out, "\n");
    text_put(out, "  type       %s%s", type_names[k->type], k->type == TABLE_CHOICE ? " " : "\n");
    if (k->type == TABLE_CHOICE) {
        put_choices(out, k, 1);
        text_put(out, "\n");
    }
    text_put(out, "  default    ");
    put_default(out, k);
    if (k->type != TABLE_CHOICE && (k->lo != 0 || k->hi != 0)) {
        text_put(out, "\n  range      ");
        put_range(out, k, 1);
    } else if (*k->unit) {
        text_put(out, "\n  unit       %s", k->unit);
    }
    text_put(out, "\n  on resume  %s\n", resume_meanings[k->resume]);
}

/* All that the word may mean: a group, GROUP.KEY, or a key of whatever group. Returns how many. */
static int put_matches(struct text *out, const char *word)
{
    const char *dot = strchr(word, '.');
    size_t n = strlen(word);
    int g = table_group_index(&config_table, word, n), found = 0;

    if (g >= 0) {
        put_group(out, g);
        found++;
    }
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct table_key *k = key_at(i);
        const char *name = dot ? dot + 1 : word;

        if (!value_is_word(name, strlen(name), k->name) ||
            (dot && !value_is_word(word, (size_t)(dot - word), k->group)))
            continue;
        text_put(out, "%s", found ? "\n" : "");
        put_detail(out, i);
        found++;
    }
    return found;
}

enum status config_help(const char *key, struct err *e)
{
    struct text out = { 0 };
    enum status st = OK;

    if (!key) {
        for (int g = 0; g < config_table.ngroups; g++) {
            text_put(&out, "%s", g ? "\n" : "");
            put_group(&out, g);
        }
    } else {
        const char *word = key + (*key == '&'), *dot = strchr(word, '.');

        if (!put_matches(&out, word)) {
            size_t n = strlen(word);
            const char *name = dot ? dot + 1 : word;
            struct hint h = table_hint_group(&config_table, word, n);

            if (dot || !h.s[0])
                h = table_hint_key(&config_table, "", name, strlen(name));
            st = err_set(e, E_INPUT, "no key `%s`%s", complaint_quote(key, strlen(key)).s, h.s);
        }
    }
    if (out.s)
        fputs(out.s, stdout);
    mem_give(out.s);
    return st;
}

/* ---- doc/INPUT.md ---- */

static const char markdown_head[] =
    "# The input\n"
    "\n"
    "This page is made from `src/input/keys.def`; `pretrain --print-markdown` prints it.\n"
    "\n"
    "The input is a Fortran namelist: groups of `name = value`, each from `&group` to `/`.\n"
    "`pretrain --check DECK.nml` reads one without starting a run, `pretrain --print-defaults` "
    "prints one with every key,\n"
    "`pretrain --help KEY` explains a key, and `--set GROUP.KEY=VALUE` overrides one from the "
    "command line.\n"
    "\n"
    "## Grammar\n"
    "\n"
    "- Names of groups and keys may be in upper or lower case; the order of groups and keys does "
    "not matter. `&end`, `$group` and\n"
    "  `$end` are read too. A group may appear once, `&source`, `&stage` and `&validation` up to "
    "32 "
    "times. `&user_...` groups are\n"
    "  skipped: they are yours.\n"
    "- Values are separated by commas, blanks or new lines. `!` starts a comment, also between the "
    "values of a list.\n"
    "  Unlike gfortran, which then inserts an empty value, `a = 1, ! note` with `2` on the next "
    "line is 1, 2.\n"
    "- Integers: `10`, not `10.0` or `1e1`. Reals: `0.1`, `.5`, `5.`, `1e-3`, `1d-3`, `1+3`; they "
    "must be finite.\n"
    "- Logicals: `.true.`, `.false.`, `true`, `false`, `T`, `F`.\n"
    "- Text is in `'` or `\"`; a doubled quote is a quote. It ends on the line where it began.\n"
    "- Lists: `a = 1, 2, 3`, `a = 3*7` (three times 7), `a(2) = 5, 6` (from the second on), "
    "`a(2:3) = 5, 6`.\n"
    "  An empty value (`a = 1, , 3`, `2*`) keeps the default.\n"
    "- A key that is given twice takes its last value, with a warning. Text outside of groups is "
    "skipped with a warning.\n"
    "- Everything else is an error. All errors are shown at once, with file, line and column; "
    "nothing is written before all is right.\n"
    "\n"
    "## On resume\n"
    "\n"
    "A run that goes on from a checkpoint compares its input with the one stored there. *fixed*: a "
    "change is refused.\n"
    "*announced*: it may change, and the log says so. *free*: it may change. *fixed once used*: "
    "what "
    "the steps made so far used is fixed:\n"
    "each source of which they took a sample, by name and by the hash of its data, and weights and "
    "lengths of the stages that they\n"
    "belong to. The rest may change: stages to come, sources that were not used yet. To change a "
    "running mixture, add a `&stage`.\n";

/* "|" would end a cell. */
static void put_cell(struct text *out, const char *s)
{
    text_put(out, " ");
    for (; *s; s++)
        text_put(out, *s == '|' ? "\\|" : "%c", *s);
    text_put(out, " |");
}

static void put_markdown_row(struct text *out, int i)
{
    const struct table_key *k = key_at(i);
    struct text x = { 0 };

    text_put(out, "| `%s` | %s | ", k->name, type_names[k->type]);
    text_put(out, is_required(k) ? "" : "`");
    put_default(out, k);
    text_put(out, is_required(k) ? " |" : "` |");
    text_put(&x, "%s", "");
    put_range(&x, k, 1);
    put_cell(out, x.s);
    put_cell(out, resume_names[k->resume]);
    put_cell(out, k->help);
    text_put(out, "\n");
    mem_give(x.s);
}

char *config_markdown_text(void)
{
    struct text out = { 0 };

    text_put(&out, "%s", markdown_head);
    for (int g = 0; g < config_table.ngroups; g++) {
        const struct table_group *group = &config_table.groups[g];

        text_put(&out, "\n## &%s\n\n%c%s.\n", group->name, toupper((unsigned char)group->help[0]),
                 group->help + 1);
        if (group->later) {
            text_put(&out, "Not in this build.\n");
            continue;
        }
        text_put(&out, "\n| key | type | default | range, unit | on resume | meaning "
                       "|\n|---|---|---|---|---|---|\n");
        for (int i = 0; i < CONFIG_KEYS; i++)
            if (strcmp(key_at(i)->group, group->name) == 0)
                put_markdown_row(&out, i);
    }
    return out.s;
}

void config_print_markdown(void)
{
    char *s = config_markdown_text();

    fputs(s, stdout);
    mem_give(s);
}
