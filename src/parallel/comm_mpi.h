/* The MPI backend of comm.h. Never blocks inside MPI: MPI_Test, yield, then sleep, so ranks may
 * outnumber cores. */
#ifndef PARALLEL_COMM_MPI_H
#define PARALLEL_COMM_MPI_H
#include "parallel/comm.h"

/* Was this process started by an MPI launcher? By its environment, before MPI starts. */
int comm_mpi_launched(void) LOCAL;
/* MPI_Init_thread (FUNNELED), error handler, die() hook = MPI_Abort. Returns the world. */
struct comm *comm_mpi_start(int *argc, char ***argv) COLL(world);
void comm_mpi_end(struct comm *world) COLL(world); /* frees all, MPI_Finalize */
/* Ranks with the same color (>= 0; -1: in none, returns NULL) in order of key. All ranks of parent
 * call. */
struct comm *comm_mpi_split(struct comm *parent, int color, int key, const char *name) COLL(parent);
/* Ranks of one node: the same host name and the same kernel. */
struct comm *comm_mpi_split_node(struct comm *parent, const char *name) COLL(parent);
/* Does the node have more ranks than cores? Then waiting ranks sleep soon; so they do until this is
 * called. */
void comm_mpi_crowd(struct comm *world, int ranks_outnumber_cores) LOCAL;
void comm_mpi_free(struct comm *c) COLL(c);
const char *comm_mpi_version(void) LOCAL; /* "MPICH 4.0.2" */
#endif
