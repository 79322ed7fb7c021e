/* Command lines from tables: "--name value", "--name=value", "-x value", "-h", "--help", "--",
 * operands anywhere.
 *
 * A tool is one struct program; its main is `return program_main(&program, argc, argv);`.
 * A tool without commands has one command whose name is "". */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H
#include "base/err.h"

enum option_use { OPTION_OPTIONAL, OPTION_REQUIRED, OPTION_REPEATED };

struct option_row {
    const char *name;  /* without "--" */
    char letter;       /* the short form, 0: none */
    const char *value; /* what the help calls the value; NULL: a flag */
    enum option_use use;
    const char *choices; /* "a|b|c": the only values; NULL: any */
    const char *help;
};

struct options; /* a parsed command line; texts point into argv */

struct command {
    const char *name;     /* one word, or two: "tokenizer train" */
    const char *operands; /* for the usage line: "INPUT..."; NULL: none */
    int min_operands, max_operands; /* max -1: any number */
    const char *about; /* lines for --help */
    const struct option_row *rows;
    int nrows;
    enum status (*run)(const struct options *o, struct err *e);
};

struct program {
    const char *name, *about;
    const char *version; /* the line of --version */
    const struct command *commands;
    int ncommands;
};

/* Parses, runs, complains; returns the exit code. */
int program_main(const struct program *p, int argc, char **argv) LOCAL;

/* argv[0] is skipped. E_INPUT: unknown option (with the nearest name), missing value, unknown
 * choice, given twice, required option or operand absent. *o is NULL when --help was printed. */
enum status options_parse(struct options **o, const char *tool, const struct command *c, int argc,
                          char **argv, struct err *e) LOCAL;
void options_close(struct options *o) LOCAL;
void options_print_help(const char *tool, const struct command *c) LOCAL;

/* An option that no row names is a bug. */
int options_given(const struct options *o, const char *name) LOCAL; /* how many times */
/* The last value, NULL: not given; and the i-th of a repeated option. */
const char *options_text(const struct options *o, const char *name) LOCAL;
const char *options_item(const struct options *o, const char *name, int i) LOCAL;
/* *v stays as it is when the option is not given. E_INPUT outside lo .. hi. */
enum status options_i64(const struct options *o, const char *name, int64_t lo, int64_t hi,
                        int64_t *v, struct err *e) LOCAL;
enum status options_f64(const struct options *o, const char *name, double lo, double hi, double *v,
                        struct err *e) LOCAL;
/* 5GB, 512MiB */
enum status options_bytes(const struct options *o, const char *name, int64_t *v,
                          struct err *e) LOCAL;
int options_noperands(const struct options *o) LOCAL;
const char *const *options_operands(const struct options *o) LOCAL;

/* The nearest of names by edit distance; NULL: none is near. */
const char *options_nearest(const char *word, const char *const *names, int n) LOCAL;
#endif
