/* How a schedule is made, between the files of this folder: order -> lists -> slots. */
#ifndef SCHEDULE_LISTS_H
#define SCHEDULE_LISTS_H
#include "schedule/schedule.h"

enum { SCHEDULE_CHUNKS_MAX = 255, SCHEDULE_SLOTS_MAX = 32767 }; /* widths in struct action */

struct step {            /* one computation, before transfers are known */
    uint8_t kind, chunk; /* ACT_F, ACT_B, ACT_I or ACT_W */
    int32_t mb;
};

struct schedule_kind {
    const char *name;
    int chunked; /* takes more than one chunk per rank, and then pp must divide mbs */
    int per_mb;  /* steps of one micro-batch in one chunk */
    int spare;   /* activation slots beyond the order's own needs: a receive can come early */
    /* out[mbs * chunks * per_mb] */
    void (*generate)(const struct schedule *s, int rank, struct step *out);
};
/* ends with name NULL; same order as schedule_names */
extern const struct schedule_kind schedule_kinds[];
extern const struct schedule_kind schedule_forward;

/* order[pp * n]: n steps of each rank; cap[pp]: activation slots that receives may fill (raised
 * where the order needs more). Writes s->list and s->n with all fields but the slots. E_BUG when
 * the order cannot run. */
enum status schedule_lower(struct schedule *s, const struct step *order, int n, int *cap,
                           struct err *e) LOCAL;
/* Lowest free index for each lifetime: slot, grad, stash, to_*, and s->slots, grads, stashes. */
enum status schedule_place_slots(struct schedule *s, struct err *e) LOCAL;
/* build without the simulation */
enum status schedule_make(struct schedule *s, const char *name, int pp, int chunks, int mbs,
                          struct err *e) LOCAL;

/* What each list must hold by itself, walked in list order. 0 and r->why at the first fault. */
int schedule_check(const struct schedule *s, struct schedule_report *r) LOCAL;
/* "sF12", with ".chunk" when there are several; size 32 is enough. Returns buf. */
char *schedule_action_text(char *buf, size_t size, const struct schedule *s,
                           const struct action *a) LOCAL;
#endif
