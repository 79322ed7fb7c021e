/* A command's frame: model, layout and memory; the units of work over the replicas; the results. */
#ifndef INFER_WORK_H
#define INFER_WORK_H
#include "hf/json_text.h"
#include "infer/items.h"
#include "infer/parts.h"
#include "infer/source.h"

struct work {
    const struct infer_options *o;
    const struct work_kind *kind;
    struct source model; /* rank 0: with its texts */
    struct run r;
    struct forward_use use;
    struct items items;
    struct codec *codec;     /* rank 0, if a command opened it */
    struct tokens tokens;    /* of a token file; its path is "" without one       */
    int64_t S, B, in_flight; /* S, B: what a unit is; rows may be more (tp)      */
    int64_t stride;          /* of a token file: from one window to the next     */
    int64_t new_tokens;      /* generate: of a sequence at most                  */
    int64_t units, nrows;    /* nrows: sequences, windows: B of them are a unit  */
    struct json_text job;    /* rank 0: what the results depend on               */
    struct parts parts;
    int64_t passes; /* of this replica */
    void *own;      /* the command's */
};

struct work_kind {
    const char *name;
    /* Rank 0: reads the inputs, sets S, B, nrows and, of generate, new_tokens. */
    enum status (*read)(struct work *w, struct err *e);
    /* All ranks, before memory is placed: use, by S. */
    void (*ask)(struct work *w);
    enum status (*begin)(struct work *w, struct err *e); /* LOCAL; may be NULL */
    /* Ranks of one replica: units[n], n <= in_flight; the leader writes a record of each. */
    enum status (*pass)(struct work *w, const int64_t *units, int n, struct err *e);
    /* Rank 0, all records are there: the file `path`, and what to say. */
    enum status (*finish)(struct work *w, const char *path, struct err *e);
    void (*end)(struct work *w); /* may be NULL */
};

/* own: the command's, zeroed. */
enum status work_run(struct comm *world, const struct infer_options *o,
                     const struct work_kind *kind, void *own) COLL(world);
/* Of its replica the rank that has logits and losses, and writes. */
int work_leads(const struct work *w) LOCAL;
/* Asked to stop? The ranks of a replica agree later. */
enum status work_stop_asked(const struct work *w, struct err *e) LOCAL;
/* Sequences of the unit: B, of the last one perhaps fewer; the first one's number. */
static inline int64_t work_first(const struct work *w, int64_t unit)
{
    return unit * w->B;
}
static inline int64_t work_rows(const struct work *w, int64_t unit)
{
    return min_i64(w->B, w->nrows - unit * w->B);
}
/* One line of options and numbers that the results depend on. */
void work_note(struct work *w, const char *fmt, ...) LOCAL __attribute__((format(printf, 2, 3)));
/* Also the input's bytes. */
enum status work_note_input(struct work *w, const char *path, struct err *e) LOCAL;
int work_is_jsonl(const char *path) LOCAL; /* by its name */
#endif
