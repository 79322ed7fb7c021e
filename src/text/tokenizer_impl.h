/* What is in a tokenizer; for tokenizer*.c, encoder.c and decoder.c. */
#ifndef TEXT_TOKENIZER_IMPL_H
#define TEXT_TOKENIZER_IMPL_H
#include "text/added.h"
#include "text/detoken.h"
#include "text/model.h"
#include "text/normalise.h"
#include "text/scan.h"
#include "text/split.h"
#include "text/template.h"
#include "text/tokenizer.h"

struct tokenizer {
    uint8_t *classes; /* [UNICODE_POINTS]: enum unicode_class */
    struct model model;
    struct normaliser normaliser;
    struct splitter splitter;
    struct template template;
    struct detoken detoken;
    struct added_token *added; /* [nadded] */
    int nadded;
    const struct added_token **by_id; /* [size]: an added token, or NULL */
    uint32_t size;                    /* largest id + 1 */
    struct finder raw, normalised;    /* tokens found before and after the normaliser */
    struct buffer forms;              /* contents of the latter as the normaliser makes them */
    int cuttable;                     /* long texts may be encoded in parts: encoder.c */
    int cuts;                         /* what tokenizer_cut() may do */
    enum scan_kind scan;              /* the splitter in short, if there is such */
    int rewrites;                     /* a text may be copied on its way */
};

/* Reads added_tokens; the model and the normaliser are there. tokenizer_added.c */
enum status tokenizer_read_added(struct tokenizer *t, const struct part *top, struct err *e) LOCAL;
enum status tokenizer_add_token(struct tokenizer *t, const char *content, uint32_t id,
                                struct err *e) LOCAL;
struct tokenizer *tokenizer_new(void) LOCAL;
/* The last of opening: *t = k, or k is closed. Returns st. */
enum status tokenizer_finish(struct tokenizer **t, struct tokenizer *k, enum status st) LOCAL;
int tokenizer_is_cuttable(const struct tokenizer *t) LOCAL;
int tokenizer_cuts(const struct tokenizer *t) LOCAL;
#endif
