/* Command lines from tables: forms, values, complaints, near misses. */
#include "base/options.h"

#include "base/arena.h"
#include "tests/tap.h"

static const struct option_row rows[] = {
    { "set", 0, "GROUP.KEY=VALUE", OPTION_REPEATED, NULL, "a key" },
    { "output", 'o', "OUT", OPTION_REQUIRED, NULL, "where to" },
    { "format", 0, "FORMAT", OPTION_OPTIONAL, "safetensors|hdf5", "of what" },
    { "ranks", 'n', "N", OPTION_OPTIONAL, NULL, "how many" },
    { "ratio", 0, "R", OPTION_OPTIONAL, NULL, "of what" },
    { "max-size", 0, "SIZE", OPTION_OPTIONAL, NULL, "of a shard" },
    { "with-optimizer", 0, NULL, OPTION_OPTIONAL, NULL, "a flag" },
};
static const struct command command = {
    "", "IN [MORE]", 1, 2, "A test.", rows, COUNT_OF(rows), NULL
};
static struct err err;
static struct options *o;

/* Parses "tool" and the words of line; o is the result. */
static enum status parse(const char *line)
{
    static char text[512];
    static char *argv[32];
    int argc = 1;

    options_close(o);
    err.text[0] = '\0';
    argv[0] = "tool";
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return options_parse(&o, "tool", &command, argc, argv, &err);
}

static int is(const char *name, const char *want)
{
    const char *value = options_text(o, name);

    return want ? value && strcmp(value, want) == 0 : !value;
}

static void test_forms(void)
{
    int64_t n = 5, bytes = 0;
    double r = 0;

    tap_ok(parse("in -o out") == OK && is("output", "out") && is("format", NULL) &&
               options_noperands(o) == 1 && strcmp(options_operands(o)[0], "in") == 0,
           "letter and operand");
    tap_ok(parse("--output=a=b in") == OK && is("output", "a=b"), "--name=value with another =");
    tap_ok(parse("--output= in") == OK && is("output", ""), "an empty value");
    tap_ok(parse("-oout in") == OK && is("output", "out"), "-xvalue");
    tap_ok(parse("-o out -- -in --set") == OK && options_noperands(o) == 2 &&
               strcmp(options_operands(o)[1], "--set") == 0,
           "-- ends the options");
    tap_ok(parse("-o - -") == OK && is("output", "-") && options_noperands(o) == 1,
           "- is an operand");
    tap_ok(parse("in --set a.b=1 -o out --set a.c=2") == OK && options_given(o, "set") == 2 &&
               !strcmp(options_item(o, "set", 0), "a.b=1") &&
               !strcmp(options_item(o, "set", 1), "a.c=2") && !options_item(o, "set", 2),
           "a repeated option keeps its order");
    tap_ok(parse("in -o out --with-optimizer") == OK && options_given(o, "with-optimizer"),
           "a flag");
    tap_ok(options_i64(o, "ranks", 1, 9, &n, &err) == OK && n == 5, "a number not given stays");
    parse("in -o out --ranks -3 --ratio 2.5e-1 --max-size 5GB");
    tap_ok(options_i64(o, "ranks", -9, 9, &n, &err) == OK && n == -3, "a negative number");
    tap_ok(options_f64(o, "ratio", 0, 1, &r, &err) == OK && r == 0.25, "a real number");
    tap_ok(options_bytes(o, "max-size", &bytes, &err) == OK && bytes == 5000000000, "5GB");
    parse("in -o out --max-size 1.5KiB");
    tap_ok(options_bytes(o, "max-size", &bytes, &err) == OK && bytes == 1536, "1.5KiB");
}

static void test_values(void)
{
    static const char *const integers[] = {
        "", "x", "1x", "1.0", "10", "0", "99999999999999999999"
    };
    static const char *const sizes[] = { "GB", "5XB", "-5GB", "0", "nan", "1e30", "inf" };
    static const char *const reals[] = { "", "x", "1.1", "-0.1", "nan", "0,5" };
    char line[128];
    int64_t n = 0;
    double r = 0;
    int bad = 0;

    for (int i = 0; i < COUNT_OF(integers); i++) {
        snprintf(line, sizeof line, "in -o out --ranks=%s", integers[i]);
        bad += parse(line) != OK || options_i64(o, "ranks", 1, 9, &n, &err) != E_INPUT;
    }
    tap_ok(bad == 0, "what is no number from 1 to 9");
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        snprintf(line, sizeof line, "in -o out --max-size=%s", sizes[i]);
        bad += parse(line) != OK || options_bytes(o, "max-size", &n, &err) != E_INPUT;
    }
    tap_ok(bad == 0, "what is no size");
    for (int i = 0; i < COUNT_OF(reals); i++) {
        snprintf(line, sizeof line, "in -o out --ratio=%s", reals[i]);
        bad += parse(line) != OK || options_f64(o, "ratio", 0, 1, &r, &err) != E_INPUT;
    }
    tap_ok(bad == 0, "what is no number from 0 to 1");
}

static void test_refusals(void)
{
    static const struct {
        const char *line, *said;
    } cases[] = {
        { "in", "--output OUT is missing" },
        { "-o out", "IN [MORE] is missing" },
        { "in -o", "--output needs a value: OUT" },
        { "in --output --ranks 3", "--output needs a value: OUT" },
        { "in -o a -o b", "--output is given twice" },
        { "in -o a --output=b", "--output is given twice" },
        { "in -o out --format pdf", "must be one of safetensors|hdf5" },
        { "in -o out --format safe", "must be one of" },
        { "in -o out --with-optimizer=yes", "takes no value" },
        { "in -o out --fromat hdf5", "did you mean --format?" },
        { "in -o out --rnaks=3", "did you mean --ranks?" },
        { "in -o out --xyzzy", "see --help" },
        { "in -o out --output-file x", "no option \"--output-file\"" },
        { "in -o out -x", "no option \"-x\"" },
        { "a b c -o out", "\"c\" is too much" },
    };

    for (int i = 0; i < COUNT_OF(cases); i++)
        if (!tap_ok(parse(cases[i].line) == E_INPUT && strstr(err.text, cases[i].said) && !o,
                    "%s: %s", cases[i].line, cases[i].said))
            printf("# %s\n", err.text);
}

static void test_nearest(void)
{
    static const char *const names[] = { "learning_rate", "tp", "pp", "hidden_size" };
    const char *near = options_nearest("lerning_rate", names, 4);

    tap_ok(near && strcmp(near, "learning_rate") == 0, "one letter less");
    near = options_nearest("hidden_szie", names, 4);
    tap_ok(near && strcmp(near, "hidden_size") == 0, "two letters swapped");
    tap_ok(!options_nearest("something_else_altogether", names, 4), "nothing near");
    tap_ok(!options_nearest("x", names, 4), "a short word is not near all short names");
}

int main(void)
{
    tap_plan(35);
    test_forms();
    test_values();
    test_refusals();
    test_nearest();
    options_close(o);
    return tap_done();
}
