/* Merging: from the symbols of a piece to its ids. Always the pair of the lowest rank first, among
 * equals the leftmost. */
#ifndef TEXT_MERGER_H
#define TEXT_MERGER_H
#include "text/model.h"

struct merger {                       /* a thread's scratch; zeroed before use */
    uint32_t *symbol, *next, *before; /* [room] */
    size_t room;
    struct merger_candidate {
        uint32_t rank, at, id;
    } * heap; /* [heap_room] */
    size_t heap_n, heap_room;
};

void merger_free(struct merger *g) LOCAL;
/* Appends the ids of a piece of at most 2^31 bytes. E_INPUT: a character that the vocabulary lacks,
 * and unk_token is not there either. */
enum status merger_run(const struct model *m, struct merger *g, const char *piece, size_t n,
                       struct ids *out, struct err *e) LOCAL;
/* Where the piece [at, n) can be cut first so that no merge spans the cut; n: nowhere. */
size_t merger_border(const struct model *m, const char *piece, size_t n, size_t at) LOCAL;
#endif
