/* The order of computations, one generator per schedule. */
#include "schedule/lists.h"

static struct step *put(struct step *out, enum act kind, int chunk, int mb)
{
    *out = (struct step){ .kind = (uint8_t)kind, .chunk = (uint8_t)chunk, .mb = mb };
    return out + 1;
}

static int warm_up(const struct schedule *s, int forwards)
{
    return (int)min_i64(forwards, (int64_t)s->mbs * s->chunks);
}

/* All forwards, then all backwards; these too from the first micro-batch on, so that gradients add
 * up in one order everywhere. */
static void generate_gpipe(const struct schedule *s, int rank, struct step *out)
{
    (void)rank;
    for (int m = 0; m < s->mbs; m++)
        out = put(out, ACT_F, 0, m);
    for (int m = 0; m < s->mbs; m++)
        out = put(out, ACT_B, 0, m);
}

/* k-th forward or backward of a rank: groups of pp micro-batches visit the chunks in turn,
 * backwards from the last chunk. */
static struct step *put_nth(struct step *out, const struct schedule *s, enum act kind, int k)
{
    int group = s->pp * s->chunks, chunk = k % group / s->pp;

    return put(out, kind, kind == ACT_F ? chunk : s->chunks - 1 - chunk,
               k / group * s->pp + k % s->pp);
}

/* `warm` forwards, then one forward and one backward in turn, then the other backwards. */
static void generate_alternating(const struct schedule *s, int warm, struct step *out)
{
    int total = s->mbs * s->chunks;

    for (int k = 0; k < total + warm; k++) {
        if (k < total)
            out = put_nth(out, s, ACT_F, k);
        if (k >= warm)
            out = put_nth(out, s, ACT_B, k - warm);
    }
}

static void generate_1f1b(const struct schedule *s, int rank, struct step *out)
{
    generate_alternating(s, warm_up(s, s->pp - 1 - rank), out);
}

/* Narayanan et al., SC'21, section 2.2. */
static void generate_interleaved(const struct schedule *s, int rank, struct step *out)
{
    generate_alternating(s, warm_up(s, 2 * (s->pp - 1 - rank) + (s->chunks - 1) * s->pp), out);
}

/* Qi et al., "Zero Bubble Pipeline Parallelism", ZB-H1: 1F1B whose weight halves on rank r run r
 * micro-batches late, so that every rank holds at most pp activations, as many as rank 0 does under
 * 1F1B. */
static void generate_zb_h1(const struct schedule *s, int rank, struct step *out)
{
    int warm = warm_up(s, s->pp - 1 - rank), w = 0;

    for (int k = 0; k < s->mbs + warm; k++) {
        if (k < s->mbs)
            out = put(out, ACT_F, 0, k);
        if (k >= warm)
            out = put(out, ACT_I, 0, k - warm);
        if (k - warm >= rank)
            out = put(out, ACT_W, 0, w++);
    }
    while (w < s->mbs)
        out = put(out, ACT_W, 0, w++);
}

/* The order of interleaved forwards for any number of micro-batches: the last group may be short.
 */
static void generate_forward(const struct schedule *s, int rank, struct step *out)
{
    (void)rank;
    for (int from = 0; from < s->mbs; from += s->pp)
        for (int c = 0; c < s->chunks; c++)
            for (int m = from; m < s->mbs && m < from + s->pp; m++)
                out = put(out, ACT_F, c, m);
}

const struct schedule_kind schedule_kinds[] = {
    { "gpipe", 0, 2, 0, generate_gpipe },
    { "1f1b", 0, 2, 0, generate_1f1b },
    { "zb-h1", 0, 3, 0, generate_zb_h1 },
    { "interleaved", 1, 2, 1, generate_interleaved },
    { NULL, 0, 0, 0, NULL },
};
const char *const schedule_names[] = { "gpipe", "1f1b", "zb-h1", "interleaved", NULL };
const struct schedule_kind schedule_forward = { "forward", 1, 1, 0, generate_forward };
