/* How often each piece of a text occurs: a table of byte strings with a number each. */
#ifndef TEXT_WORD_COUNT_H
#define TEXT_WORD_COUNT_H
#include "base/arena.h"

enum { WORD_PAD = 16 }; /* bytes that must be readable behind a text given to word_count_* */

struct word_slot {   /* n = 0: empty */
    uint64_t key[2]; /* up to 16 bytes, then zeros; longer: the hash, and where in `text` */
    int64_t count;
    uint32_t n;
};
struct word_count {         /* zeroed before use */
    struct word_slot *slot; /* [room], a power of two; in slots */
    size_t room, used;
    struct arena slots;
    char *text; /* [text_room] the words longer than 16 bytes */
    size_t text_used, text_room;
};

/* Adds 1 to each of the n pieces of text, one behind another: they end at ends[i], the first begins
 * at start. None is empty. */
void word_count_add(struct word_count *w, const char *text, uint32_t start, const uint32_t *ends,
                    int n) LOCAL;
/* The number of one word, new ones 0; good until the next call. */
int64_t *word_count_at(struct word_count *w, const char *text, uint32_t n) LOCAL;
/* The word of a slot, not terminated. */
static inline const char *word_count_text(const struct word_count *w, const struct word_slot *s)
{
    return s->n <= sizeof s->key ? (const char *)s->key : w->text + s->key[1];
}
/* Adds all numbers of `from`, which is empty afterwards. */
void word_count_merge(struct word_count *w, struct word_count *from) LOCAL;
/* Zeroed, in huge pages: what is visited at random. Given back with arena_close. */
void *word_count_memory(struct arena *a, size_t bytes) LOCAL;
void word_count_close(struct word_count *w) LOCAL;
#endif
