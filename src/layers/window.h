/* What blocks keep from one action to another, while it lives in host memory: the device has a few
 * frames of one block each, and a block works in one of them. All operations are queued; copies
 * run in lanes of their own (compute/lanes.h) beside the blocks before and after.
 *
 * A key is one block of one slot. Its life: write, save; then for each action that needs it, fetch
 * (perhaps ahead), read, and keep or drop. A key that is still in its frame is not fetched. */
#ifndef LAYERS_WINDOW_H
#define LAYERS_WINDOW_H
#include "layers/layer.h"

/* The block at work; the one before it, on its way out; the next one, on its way in, or where its
 * input is written. */
enum { WINDOW_FRAMES = 3 };

struct window {
    int keys, layers;          /* key = slot * layers + block of the slot; keys 0: there is none */
    int point;                 /* the first of its window_points in the lanes */
    dptr *home;                /* [keys] in pinned memory */
    size_t bytes, first_bytes; /* of a frame; of block 0, whose input lies elsewhere */
    struct window_frame {
        dptr at;
        int holds;     /* key, or -1                                          */
        int leaving;   /* key whose copy out may not be done, or -1           */
        int arriving;  /* computing has not been made to wait for the copy in */
        int64_t taken; /* when; by `clock` */
    } frame[WINDOW_FRAMES];
    int64_t clock;
};

/* slots 0: none */
void window_init(struct window *w, int slots, int layers, int point) LOCAL;
void window_free(struct window *w) LOCAL;
int window_points(const struct window *w) LOCAL;
/* The homes. The caller has placed the frames and knows their bytes. */
void window_place(struct window *w, struct arena *host) LOCAL;

/* Each returns a frame, which holds the key until two more keys were taken. */
int window_write(struct env *e, struct window *w, int key) LOCAL;
int window_fetch(struct env *e, struct window *w, int key) LOCAL; /* not yet to be read */
int window_read(struct env *e, struct window *w, int key) LOCAL;
/* After the operations that used the key: it goes home; it stays there; it is not needed again. */
void window_save(struct env *e, struct window *w, int key) LOCAL;
void window_keep(struct env *e, struct window *w, int key) LOCAL;
void window_drop(struct env *e, struct window *w, int key) LOCAL;
/* Later operations come after all copies. */
void window_settle(struct env *e, struct window *w) LOCAL;
#endif
