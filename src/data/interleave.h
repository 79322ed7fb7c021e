/* Draws from several sources in proportion to their weights, without state: a table of one period.
 *
 * Draw number t belongs to a source so that after every n draws each source has had its weight x n,
 * to within one. Unit j of a source with weight w out of W may be drawn from floor(jW/w) on and
 * must be by ceil((j+1)W/w) - 1; earliest deadline first meets all of these windows (Baruah et al.
 * 1996, "Proportionate progress", for one processor; Liu and Layland 1973). */
#ifndef DATA_INTERLEAVE_H
#define DATA_INTERLEAVE_H
#include "base/types.h"

enum { INTERLEAVE_UNIT = 65536, INTERLEAVE_SOURCES = 32 };

struct interleave {
    int n, period;                 /* sources; draws after which all repeats */
    int count[INTERLEAVE_SOURCES]; /* of a period: the weight, reduced */
    unsigned char *source;         /* [period] whose draw it is */
    uint16_t *before;              /* [period] draws of that source earlier in the period */
};

/* Weights as multiples of 1/INTERLEAVE_UNIT that add up to 1: rounded down, then one more for those
 * that lost most (the first of equals). Returns a source that has a weight but gets none, or -1.
 * Some weight is positive. */
int interleave_round(const double *weight, int n, int *units) LOCAL;
/* units add up to INTERLEAVE_UNIT. */
void interleave_make(struct interleave *x, const int *units, int n) LOCAL;
void interleave_free(struct interleave *x) LOCAL;
/* The source of draw t, and how many draws of that source come before it. O(1). */
int interleave_draw(const struct interleave *x, int64_t t, int64_t *before) LOCAL;
/* How many of the first t draws are of a source. O(period). */
int64_t interleave_count(const struct interleave *x, int64_t t, int source) LOCAL;
#endif
