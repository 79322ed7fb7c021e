#include "text/buffer.h"

void buffer_grow(struct buffer *b, size_t more)
{
    size_t room = b->n + more + b->room / 2 + 64;

    b->at = mem_grow(b->at, b->room, room);
    b->room = room;
}

void ids_grow(struct ids *b, size_t more)
{
    size_t room = b->n + more + b->room / 2 + 64;

    b->at = mem_grow(b->at, b->room * sizeof *b->at, room * sizeof *b->at);
    b->room = room;
}

void buffer_free(struct buffer *b)
{
    mem_give(b->at);
    *b = (struct buffer){ 0 };
}

void ids_free(struct ids *b)
{
    mem_give(b->at);
    *b = (struct ids){ 0 };
}
