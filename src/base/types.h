/* What every other file may rely on: exit codes, the two marks of a prototype, device memory. */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H
#include <stddef.h>
#include <stdint.h>

/* Who must call a function. COLL(comm): every rank of comm, in the same order. LOCAL: anyone. */
#define COLL(...)
#define LOCAL

/* A status is also the exit code of the program (doc/design.md, section 9). Larger is worse. */
enum status {
    OK = 0,
    E_INPUT = 2,    /* deck, command line                        */
    E_FILE = 3,     /* token file, checkpoint, safetensors, disk */
    E_NUMERIC = 4,  /* loss or gradient not finite               */
    E_HANG = 5,     /* a rank stopped                            */
    E_RESOURCE = 6, /* memory, device                            */
    E_PEER = 7,     /* MPI, CUDA or NCCL failed inside a step    */
    E_BUG = 70,     /* broken invariant                          */
    E_STOP = 75     /* asked to stop; checkpoint written, requeue */
};

/* Memory of the compute backend. Unwrapped only in cuda/, compute/ and comm_mpi. */
typedef struct {
    char *p;
} dptr;
static inline dptr dptr_at(dptr d, int64_t bytes)
{
    return (dptr){ d.p ? d.p + bytes : NULL };
}
#define DPTR_NONE ((dptr){ NULL })

struct queue; /* an ordered stream of operations of one backend */

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof(*(a))))
static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
#endif
