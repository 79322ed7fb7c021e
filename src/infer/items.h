/* Sequences of ids that a command was given: rows of a jsonl file, prompts, choices. */
#ifndef INFER_ITEMS_H
#define INFER_ITEMS_H
#include "convert/jsonl.h"
#include "infer/codec.h"
#include "parallel/comm.h"

struct items { /* the same on all ranks after items_share */
    int64_t n, nids;
    int64_t *first; /* [n + 1] of an item in ids   */
    int64_t *from;  /* [n] tokens before the first that is scored */
    int64_t *group; /* [n] the question that a choice belongs to  */
    int32_t *ids;   /* [nids] */
    int64_t room_items, room_ids;
};
/* What an id must be, and how long an item may be. */
struct items_limits {
    int64_t vocab_size, positions;
};

void items_free(struct items *t) LOCAL;
/* An empty item at the end; ids go to the last one. */
void items_begin(struct items *t, int64_t group) LOCAL;
void items_put(struct items *t, const int32_t *ids, int64_t n) LOCAL;
static inline int64_t items_length(const struct items *t, int64_t i)
{
    return t->first[i + 1] - t->first[i];
}
int64_t items_longest(const struct items *t) LOCAL; /* tokens */
/* The last item: not empty, not too long, ids in range. where: "FILE:LINE". E_FILE. */
enum status items_check(const struct items *t, const struct items_limits *l, const char *where,
                        struct err *e) LOCAL;
/* A member of a line's object: a list of ids. */
enum status items_put_list(struct items *t, const json_t *list, const char *where,
                           struct err *e) LOCAL;
/* A text, by the model's tokenizer. start: what the tokenizer puts before a text is put too. */
enum status items_put_text(struct items *t, struct codec *c, const json_t *text, int start,
                           const char *where, struct err *e) LOCAL;
void items_share(struct items *t, struct comm *world) COLL(world); /* rank 0's */

/* For each line's object of the jsonl file. */
typedef enum status items_line(void *context, const json_t *object, const char *where,
                               struct err *e);
enum status items_read(const char *path, items_line *line, void *context, struct err *e) LOCAL;
#endif
