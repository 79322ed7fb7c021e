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
    int64_t end;                      /* the token that ends a document; -1: none is known */
    struct spm *spm;                  /* NULL: not of such a model. Else it encodes */
};

/* Reads added_tokens; the model and the normaliser are there. tokenizer_added.c */
enum status tokenizer_read_added(struct tokenizer *t, const struct part *top, struct err *e) LOCAL;
enum status tokenizer_add_token(struct tokenizer *t, const char *content, uint32_t id,
                                struct err *e) LOCAL;
/* These ids of the model are special tokens. */
enum status tokenizer_mark_special(struct tokenizer *t, const uint32_t *ids, size_t n,
                                   struct err *e) LOCAL;
struct tokenizer *tokenizer_new(void) LOCAL;
/* The last of opening: *t = k, or k is closed. Returns st. */
enum status tokenizer_finish(struct tokenizer **t, struct tokenizer *k, enum status st) LOCAL;
int tokenizer_is_cuttable(const struct tokenizer *t) LOCAL;
int tokenizer_cuts(const struct tokenizer *t) LOCAL;

/* SentencePiece models, tokenizer_model.c. */
/* E_FILE also where this build has no libsentencepiece. */
enum status tokenizer_open_model(struct tokenizer **t, const void *bytes, size_t n,
                                 struct err *e) LOCAL;
void tokenizer_close_model(struct tokenizer *t) LOCAL;
/* Appends the ids of a whole text, which is UTF-8. E_RESOURCE: it is too long. */
enum status tokenizer_encode_model(const struct tokenizer *t, const char *text, size_t n,
                                   struct ids *out, struct err *e) LOCAL;
#endif
