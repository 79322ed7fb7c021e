#include "base/options.h"

#include "base/arena.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found {
    const struct option_row *row;
    const char *value; /* "" for a flag */
};

struct options {
    const char *tool;
    const struct command *command;
    int nfound, noperands;
    struct found *found;   /* [argc], in the order of the command line */
    const char **operands; /* [argc] */
};

/* ---- near misses ---- */

enum { WORD_MAX = 64 };

/* Edits (insert, remove, replace, swap neighbours) that make b of a; WORD_MAX when a word is too
 * long. */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int row[3][WORD_MAX + 1]; /* the last two rows and the present one */

    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *older = row[(i + 1) % 3];

        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int d = last[j - 1] + (a[i - 1] != b[j - 1]);

            d = last[j] + 1 < d ? last[j] + 1 : d;
            d = now[j - 1] + 1 < d ? now[j - 1] + 1 : d;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = older[j - 2] + 1 < d ? older[j - 2] + 1 : d;
            now[j] = d;
        }
    }
    return row[n % 3][m];
}

const char *options_nearest(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    int least = 2 + (int)strlen(word) / 4; /* nearer than this */

    for (int i = 0; i < n; i++) {
        int d = distance(word, names[i]);

        if (d < least && d < (int)strlen(names[i])) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

/* ---- parsing ---- */

static enum status unknown_option(const struct options *o, const char *arg, struct err *e)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX] = { "help" };
    char word[WORD_MAX + 1];
    const char *near;
    int n = 1;

    snprintf(word, sizeof word, "%s", arg + 2);
    word[strcspn(word, "=")] = '\0';
    for (int i = 0; i < o->command->nrows && n < NAMES_MAX; i++)
        names[n++] = o->command->rows[i].name;
    near = arg[1] == '-' ? options_nearest(word, names, n) : NULL;
    return err_set(e, E_INPUT, "no option \"%s\"; %s%s%s", arg,
                   near ? "did you mean --" : "see --help", near ? near : "", near ? "?" : "");
}

static const struct option_row *row_of(const struct options *o, const char *arg, size_t n)
{
    for (int i = 0; i < o->command->nrows; i++) {
        const struct option_row *r = &o->command->rows[i];

        if (arg[1] == '-' ? n == strlen(r->name) + 2 && strncmp(arg + 2, r->name, n - 2) == 0
                          : r->letter && arg[1] == r->letter)
            return r;
    }
    return NULL;
}

static int is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);

    for (const char *c = choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
        if (strcspn(c, "|") == n && strncmp(c, value, n) == 0)
            return 1;
    return 0;
}

static enum status check_value(const struct options *o, const struct option_row *r,
                               const char *value, struct err *e)
{
    if (r->use != OPTION_REPEATED && options_given(o, r->name))
        return err_set(e, E_INPUT, "--%s is given twice", r->name);
    if (r->choices && !is_choice(r->choices, value))
        return err_set(e, E_INPUT, "--%s \"%s\": must be one of %s", r->name, value, r->choices);
    return OK;
}

/* Then it is no value: the value before it was forgotten. */
static int is_known_long(const struct options *o, const char *arg)
{
    return strncmp(arg, "--", 2) == 0 && row_of(o, arg, strcspn(arg, "=")) != NULL;
}

/* argv[*i] is an option; *i moves on over a value of its own. */
static enum status take_option(struct options *o, int argc, char **argv, int *i, struct err *e)
{
    const char *arg = argv[*i], *value = NULL;
    int is_long = arg[1] == '-';
    size_t n = is_long ? strcspn(arg, "=") : 2;
    const struct option_row *r = row_of(o, arg, n);
    enum status st;

    if (!r)
        return unknown_option(o, arg, e);
    if (arg[n])
        value = arg + n + is_long; /* --name=value, -xvalue */
    if (!r->value && value)
        return err_set(e, E_INPUT, "--%s takes no value (got \"%s\")", r->name, value);
    if (r->value && !value) {
        if (*i + 1 >= argc || is_known_long(o, argv[*i + 1]))
            return err_set(e, E_INPUT, "--%s needs a value: %s", r->name, r->value);
        value = argv[++*i];
    }
    if ((st = check_value(o, r, value ? value : "", e)) != OK)
        return st;
    o->found[o->nfound++] = (struct found){ r, value ? value : "" };
    return OK;
}

static enum status check_complete(const struct options *o, struct err *e)
{
    const struct command *c = o->command;

    for (int i = 0; i < c->nrows; i++)
        if (c->rows[i].use == OPTION_REQUIRED && !options_given(o, c->rows[i].name))
            return err_set(e, E_INPUT, "--%s %s is missing; see %s --help", c->rows[i].name,
                           c->rows[i].value ? c->rows[i].value : "", o->tool);
    if (o->noperands < c->min_operands)
        return err_set(e, E_INPUT, "%s is missing; see %s --help", c->operands, o->tool);
    if (c->max_operands >= 0 && o->noperands > c->max_operands)
        return err_set(e, E_INPUT, "\"%s\" is too much: %s%s; see %s --help",
                       o->operands[c->max_operands],
                       c->operands ? "expected only " : "no operands expected",
                       c->operands ? c->operands : "", o->tool);
    return OK;
}

static int asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
            return 1;
    return 0;
}

enum status options_parse(struct options **out, const char *tool, const struct command *c, int argc,
                          char **argv, struct err *e)
{
    struct options *o;
    enum status st = OK;
    int only_operands = 0;

    *out = NULL;
    if (asks_help(argc, argv)) {
        options_print_help(tool, c);
        return OK;
    }
    o = mem_take(sizeof *o);
    *o = (struct options){ .tool = tool, .command = c };
    o->found = mem_take((size_t)argc * sizeof *o->found);
    o->operands = mem_take((size_t)argc * sizeof *o->operands);
    for (int i = 1; i < argc && st == OK; i++) {
        if (!only_operands && strcmp(argv[i], "--") == 0)
            only_operands = 1;
        else if (!only_operands && argv[i][0] == '-' && argv[i][1])
            st = take_option(o, argc, argv, &i, e);
        else
            o->operands[o->noperands++] = argv[i];
    }
    if (st == OK)
        st = check_complete(o, e);
    if (st == OK)
        *out = o;
    else
        options_close(o);
    return st;
}

void options_close(struct options *o)
{
    if (!o)
        return;
    mem_give(o->found);
    mem_give(o->operands);
    mem_give(o);
}

/* ---- values ---- */

static void must_be_row(const struct options *o, const char *name)
{
    for (int i = 0; i < o->command->nrows; i++)
        if (strcmp(o->command->rows[i].name, name) == 0)
            return;
    die(E_BUG, "%s: the table of options has no --%s", o->tool, name);
}

int options_given(const struct options *o, const char *name)
{
    int times = 0;

    must_be_row(o, name);
    for (int i = 0; i < o->nfound; i++)
        times += strcmp(o->found[i].row->name, name) == 0;
    return times;
}

const char *options_item(const struct options *o, const char *name, int item)
{
    must_be_row(o, name);
    for (int i = 0; i < o->nfound; i++)
        if (strcmp(o->found[i].row->name, name) == 0 && item-- == 0)
            return o->found[i].value;
    return NULL;
}

const char *options_text(const struct options *o, const char *name)
{
    return options_item(o, name, options_given(o, name) - 1);
}

int options_noperands(const struct options *o)
{
    return o->noperands;
}

const char *const *options_operands(const struct options *o)
{
    return o->operands;
}

enum status options_i64(const struct options *o, const char *name, int64_t lo, int64_t hi,
                        int64_t *v, struct err *e)
{
    const char *text = options_text(o, name);
    char *end;
    long long x;

    if (!text)
        return OK;
    errno = 0;
    x = strtoll(text, &end, 10);
    if (end == text || *end || errno || x < lo || x > hi)
        return err_set(e, E_INPUT, "--%s \"%s\": must be a whole number from %lld to %lld", name,
                       text, (long long)lo, (long long)hi);
    *v = x;
    return OK;
}

enum status options_f64(const struct options *o, const char *name, double lo, double hi, double *v,
                        struct err *e)
{
    const char *text = options_text(o, name);
    char *end;
    double x;

    if (!text)
        return OK;
    x = strtod(text, &end);
    if (end == text || *end || !(x >= lo && x <= hi))
        return err_set(e, E_INPUT, "--%s \"%s\": must be a number from %g to %g", name, text, lo,
                       hi);
    *v = x;
    return OK;
}

enum status options_bytes(const struct options *o, const char *name, int64_t *v, struct err *e)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {
        { "", 1 },
        { "B", 1 },
        { "kB", 1e3 },
        { "KB", 1e3 },
        { "MB", 1e6 },
        { "GB", 1e9 },
        { "TB", 1e12 },
        { "KiB", 1 << 10 },
        { "MiB", 1 << 20 },
        { "GiB", 1 << 30 },
        { "TiB", 1099511627776.0 },
    };
    const char *text = options_text(o, name);
    char *end;
    double x;

    if (!text)
        return OK;
    x = strtod(text, &end);
    for (int i = 0; i < COUNT_OF(units); i++)
        if (end != text && strcmp(end, units[i].name) == 0 && x * units[i].bytes >= 1 &&
            x * units[i].bytes < 9e18) {
            *v = (int64_t)(x * units[i].bytes);
            return OK;
        }
    return err_set(e, E_INPUT, "--%s \"%s\": must be a size such as 500MB, 5GB or 2GiB", name,
                   text);
}

/* ---- help and the tool's main ---- */

static void print_option(char letter, const char *name, const char *value, const char *help)
{
    char left[128], dash[8] = "    ";

    if (letter)
        snprintf(dash, sizeof dash, "-%c, ", letter);
    snprintf(left, sizeof left, "%s--%s%s%s", dash, name, value ? " " : "", value ? value : "");
    if (strlen(left) > 32) { /* the help goes below */
        printf("  %s\n", left);
        left[0] = '\0';
    }
    printf("  %-32s  %s\n", left, help);
}

void options_print_help(const char *tool, const struct command *c)
{
    printf("usage: %s", tool);
    for (int i = 0; i < c->nrows; i++) {
        const struct option_row *r = &c->rows[i];
        int required = r->use == OPTION_REQUIRED;

        printf(" %s", required ? "" : "[");
        if (r->letter)
            printf("-%c", r->letter);
        else
            printf("--%s", r->name);
        printf("%s%s%s%s", r->value ? " " : "", r->value ? r->value : "", required ? "" : "]",
               r->use == OPTION_REPEATED ? "..." : "");
    }
    printf("%s%s\n\n%s\n\n", c->operands ? " " : "", c->operands ? c->operands : "", c->about);
    for (int i = 0; i < c->nrows; i++)
        print_option(c->rows[i].letter, c->rows[i].name, c->rows[i].value, c->rows[i].help);
    print_option('h', "help", NULL, "this text");
}

static void print_program(const struct program *p)
{
    printf("usage: %s COMMAND [OPTION]...\n\n%s\n\n", p->name, p->about);
    for (int i = 0; i < p->ncommands; i++)
        printf("  %-16s %.*s\n", p->commands[i].name, (int)strcspn(p->commands[i].about, "\n"),
               p->commands[i].about);
    printf("\n%s COMMAND --help says more.\n", p->name);
}

static int run_command(const char *tool, const struct command *c, int argc, char **argv)
{
    struct err *e = mem_take(sizeof *e);
    struct options *o;
    enum status st = options_parse(&o, tool, c, argc, argv, e);

    if (st == OK && o)
        st = c->run(o, e);
    if (st != OK && e->text[0]) /* else a program of many ranks has said it */
        complain("%s", e->text);
    options_close(o);
    mem_give(e);
    return (int)st;
}

/* The command whose words the arguments begin with; *words: how many. */
static const struct command *find_command(const struct program *p, int argc, char **argv,
                                          int *words)
{
    for (int i = 0; i < p->ncommands; i++) {
        const char *name = p->commands[i].name;

        for (*words = 0; *name && *words < argc; name += *name == ' ') {
            size_t n = strcspn(name, " ");

            if (strncmp(argv[*words], name, n) || argv[*words][n])
                break;
            name += n;
            ++*words;
        }
        if (!*name)
            return &p->commands[i];
    }
    return NULL;
}

/* Is `word` the first of a command of two? */
static int is_group(const struct program *p, const char *word)
{
    size_t n = strlen(word);

    for (int i = 0; i < p->ncommands; i++)
        if (n && strncmp(p->commands[i].name, word, n) == 0 && p->commands[i].name[n] == ' ')
            return 1;
    return 0;
}

static int unknown_command(const struct program *p, int argc, char **argv)
{
    const char *names[16];
    const char *near;
    char word[2 * WORD_MAX];
    int n = 0, two = argc > 1 && is_group(p, argv[0]);

    snprintf(word, sizeof word, "%s%s%s", argv[0], two ? " " : "", two ? argv[1] : "");
    for (; n < p->ncommands && n < COUNT_OF(names); n++)
        names[n] = p->commands[n].name;
    near = options_nearest(word, names, n);
    complain("no command \"%s\"; %s%s%s", word, near ? "did you mean " : "see --help",
             near ? near : "", near ? "?" : "");
    return E_INPUT;
}

int program_main(const struct program *p, int argc, char **argv)
{
    char tool[128];
    int words;
    const struct command *c = find_command(p, argc - 1, argv + 1, &words);

    log_program(p->name);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("%s\n", p->version);
        return OK;
    }
    if (c) {
        snprintf(tool, sizeof tool, "%s%s%s", p->name, words ? " " : "", c->name);
        return run_command(tool, c, argc - words, argv + words);
    }
    if (asks_help(argc > 1 && is_group(p, argv[1]) ? argc : (int)min_i64(argc, 2), argv)) {
        print_program(p);
        return OK;
    }
    if (argc < 2) {
        complain("a command is missing; see %s --help", p->name);
        return E_INPUT;
    }
    return unknown_command(p, argc - 1, argv + 1);
}
