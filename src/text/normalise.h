/* The normaliser: a chain of steps, each from one text to another. */
#ifndef TEXT_NORMALISE_H
#define TEXT_NORMALISE_H
#include "text/buffer.h"
#include "text/pattern.h"

enum { STEPS_MAX = 16 };

enum step_kind { STEP_FORM, STEP_PREPEND, STEP_REPLACE, STEP_STRIP, STEP_LOWER, STEP_KINDS };

struct step {
    enum step_kind kind;
    int form;   /* options of utf8proc */
    char *text; /* what is prepended or put in place of the pattern */
    size_t n;
    struct pattern pattern;
    int left, right;
};

struct normaliser {
    struct step step[STEPS_MAX];
    int n;
    const uint8_t *classes; /* the tokenizer's */
};

/* The part is null: no steps. E_FILE names what is not supported. */
enum status normalise_read(struct normaliser *m, const struct part *from, const uint8_t *classes,
                           struct err *e) LOCAL;
void normalise_free(struct normaliser *m) LOCAL;

/* May a text be cut before a space that follows and precedes an ASCII letter, and its parts (first:
 * the first of them) be normalised one by one? */
int normalise_cuttable(const struct normaliser *m) LOCAL;
/* Does the first character of a text become the first of the result, and it alone? */
int normalise_keeps_start(const struct normaliser *m) LOCAL;
/* May a text be cut behind a newline that stands between two characters, no spaces, and its parts
 * be normalised one by one? */
int normalise_keeps_lines(const struct normaliser *m) LOCAL;
/* Would this text (a whole one: first) stay as it is? Quick: 0 may be wrong. */
int normalise_is_idle(const struct normaliser *m, const char *text, size_t n, int first) LOCAL;
/* text becomes `to`; spare is scratch. E_RESOURCE: a regular expression. */
enum status normalise_run(const struct normaliser *m, struct pattern_scratch *s, const char *text,
                          size_t n, int first, struct buffer *to, struct buffer *spare,
                          struct err *e) LOCAL;
#endif
