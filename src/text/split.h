/* The pre-tokeniser: a chain of stages that cut a text into the pieces that the model encodes one
 * by one. */
#ifndef TEXT_SPLIT_H
#define TEXT_SPLIT_H
#include "text/buffer.h"
#include "text/pattern.h"

enum { STAGES_MAX = 16 };

enum stage_kind {
    STAGE_CUT,    /* at the matches of a pattern                             */
    STAGE_PREFIX, /* a space in front, if there is none                      */
    STAGE_SPACES, /* spaces become another character, which may be put in front */
    STAGE_BYTES   /* every byte becomes a character of the byte-level alphabet  */
};

/* What becomes of a match. */
enum behaviour { CUT_REMOVED, CUT_ISOLATED, CUT_PREVIOUS, CUT_NEXT, CUT_CONTIGUOUS };

/* Where STAGE_SPACES puts its character in front. */
enum scheme { SCHEME_ALWAYS, SCHEME_FIRST, SCHEME_NEVER };

struct stage {
    enum stage_kind kind;
    struct pattern pattern;
    enum behaviour behaviour;
    int invert; /* the gaps are the matches */
    enum scheme scheme;
    char character[5];
};

struct splitter {
    struct stage stage[STAGES_MAX];
    int n;
    int bytes; /* the last step is ByteLevel's map, which the model does itself */
    const uint8_t *classes;
};

/* The part is null: one piece. keeps_start: as normalise_keeps_start. */
enum status split_read(struct splitter *s, const struct part *from, const uint8_t *classes,
                       int keeps_start, struct err *e) LOCAL;
/* Undo `bytes`: the map becomes a stage. */
void split_map_bytes(struct splitter *s) LOCAL;
void split_free(struct splitter *s) LOCAL;
/* Does a space between two letters, which the normaliser has made into `space`, begin a piece, or
 * (its character then in *space) not matter to what is cut elsewhere? 0: it may. */
int split_cuttable(const struct splitter *s, struct buffer *space, int *begins) LOCAL;

struct split_scratch {
    struct pattern_scratch *pattern;
    struct buffer rewritten[STAGES_MAX];
};
typedef enum status split_fn(void *to, const char *piece, size_t n, struct err *e);
/* begin: the text is the begin of a segment; first: of the first one. */
enum status split_run(const struct splitter *s, struct split_scratch *w, const char *text, size_t n,
                      int begin, int first, split_fn *fn, void *to, struct err *e) LOCAL;

void split_byte_character(unsigned char byte, char to[2], int *n) LOCAL; /* the alphabet */
/* The byte of a character of the alphabet, -1: none. */
int split_character_byte(uint32_t c) LOCAL;
#endif
