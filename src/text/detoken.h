/* The decoder part: what becomes of the tokens' texts on the way back, one token after the other.
 */
#ifndef TEXT_DETOKEN_H
#define TEXT_DETOKEN_H
#include "text/buffer.h"
#include "text/pattern.h"

enum { DETOKEN_STEPS = 8 };

enum detoken_kind {
    DETOKEN_JOIN,  /* no decoder: a space between the tokens          */
    DETOKEN_BYTES, /* byte-level alphabet to bytes                    */
    DETOKEN_REPLACE,
    DETOKEN_FALLBACK, /* <0xHH> to bytes; a run that is no UTF-8 to U+FFFD each */
    DETOKEN_FUSE,
    DETOKEN_STRIP,
    DETOKEN_SPACES /* Metaspace */
};

struct detoken {
    struct detoken_step {
        enum detoken_kind kind;
        struct pattern pattern;
        char *text; /* replacement; one character to strip; Metaspace's character */
        size_t n;
        int64_t start, stop; /* to strip */
        int keep;            /* Metaspace: also in front of the first token */
        int fused;           /* gets one long token, in pieces */
    } step[DETOKEN_STEPS];
    int n;
};

/* The part is null: tokens joined by spaces. E_FILE names what is not supported. */
enum status detoken_read(struct detoken *d, const struct part *from, struct err *e) LOCAL;
void detoken_free(struct detoken *d) LOCAL;

struct detoken_state { /* zeroed at the begin of a text */
    struct buffer held[DETOKEN_STEPS], work[DETOKEN_STEPS];
    int64_t count[DETOKEN_STEPS], cut[DETOKEN_STEPS];
    struct pattern_scratch *scratch;
};
/* added: an added token, whose content is its text. E_RESOURCE: a regular expression. */
enum status detoken_add(const struct detoken *d, struct detoken_state *s, const char *token,
                        size_t n, int added, struct buffer *out, struct err *e) LOCAL;
/* What was held back; the state is as at the begin again. */
enum status detoken_end(const struct detoken *d, struct detoken_state *s, struct buffer *out,
                        struct err *e) LOCAL;
void detoken_state_free(struct detoken_state *s) LOCAL;
#endif
