/* Masters and moments in host memory, updated by the CPU backend (Ren et al. 2021): a chunk after
 * the other comes as a gradient from the device and goes back as compute weights. */
#ifndef OPTIM_OFFLOAD_H
#define OPTIM_OFFLOAD_H
#include "optim/optim.h"

/* Room for what is under way. Nothing if the state is not offloaded. */
void offload_place(struct optim *o, struct arena *state) LOCAL;
/* The update of all pieces; a: this step's constants but for decay. */
void offload_update(struct optim *o, const struct optim_step *s, struct adamw_step a,
                    double norm) LOCAL;
/* Compute weights of this rank's pieces from masters. */
void offload_weights(struct optim *o) LOCAL;
#endif
