/* What the inputs of a command line are: files, those in folders, standard input. */
#ifndef CONVERT_INPUT_LIST_H
#define CONVERT_INPUT_LIST_H
#include "base/err.h"

/* In a file of lines each is a document; of JSON lines, the field of each object. */
enum input_format { INPUT_BY_NAME, INPUT_TEXT, INPUT_JSONL, INPUT_LINES };
#define INPUT_FORMATS "text|jsonl|lines"

struct input {
    char *path; /* "-": standard input */
    enum input_format format;
    int64_t size, changed; /* bytes, and file_changed() */
};
struct input_list {
    struct input *at; /* [n] */
    int64_t n, room;
    int64_t bytes;          /* of all; -1: not known */
    int64_t unknown, empty; /* files in folders that were passed over */
    char names[200];        /* of the first of the unknown */
};

const char *input_name(const struct input *in) LOCAL; /* for a message */
int input_is_jsonl(const char *path) LOCAL;           /* by its name */
enum input_format input_format_of(const char *name) LOCAL;
/* Is there a text that can be read, or a packed file? */
enum status input_check(const char *path, int64_t *size, int64_t *changed, struct err *e) LOCAL;
/* Folders are searched: names in the order of their bytes, hidden ones not, only those with a known
 * ending. E_FILE: an input that cannot be read, or nothing in a folder; E_INPUT: standard input
 * without a format, or twice. */
enum status input_list_make(struct input_list *l, const char *const *operands, int n,
                            enum input_format format, struct err *e) LOCAL;
/* One line about what was passed over, if there is something. */
void input_list_say(const struct input_list *l) LOCAL;
void input_list_free(struct input_list *l) LOCAL;
#endif
