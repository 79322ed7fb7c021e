/* Arrays that grow: bytes and token ids. Zeroed before use, freed with buffer_free / ids_free. */
#ifndef TEXT_BUFFER_H
#define TEXT_BUFFER_H
#include <string.h>

#include "base/arena.h"

struct buffer {
    char *at;
    size_t n, room;
};

struct ids {
    uint32_t *at;
    size_t n, room;
};

void buffer_grow(struct buffer *b, size_t more) LOCAL; /* room for `more` behind n */
void ids_grow(struct ids *b, size_t more) LOCAL;
void buffer_free(struct buffer *b) LOCAL;
void ids_free(struct ids *b) LOCAL;

static inline void buffer_add(struct buffer *b, const void *p, size_t n)
{
    if (n > b->room - b->n)
        buffer_grow(b, n);
    if (n)
        memcpy(b->at + b->n, p, n);
    b->n += n;
}
static inline void buffer_text(struct buffer *b, const char *s)
{
    buffer_add(b, s, strlen(s));
}
static inline void ids_add(struct ids *b, uint32_t id)
{
    if (b->n == b->room)
        ids_grow(b, 1);
    b->at[b->n++] = id;
}
#endif
