/* Every parameter of the model and the part of it that a rank holds. All that walks parameters is a
 * loop over this list. */
#ifndef MODEL_PARAMS_H
#define MODEL_PARAMS_H
#include "base/arena.h"
#include "base/box.h"
#include "input/config.h"

enum param_layers {
    LAYERS_EVERY,
    LAYERS_DENSE,
    LAYERS_MOE,
    LAYERS_BIAS,
    LAYERS_OBIAS,
    LAYERS_MLPBIAS,
    LAYERS_QKNORM,
    LAYERS_UNTIED
};
enum param_dim { DIM_ONE, DIM_VOCAB, DIM_HIDDEN, DIM_QDIM, DIM_KVDIM, DIM_HEAD, DIM_FFN, DIM_N };
enum param_gradient { GRADIENT_SHARDED, GRADIENT_PARTIAL, GRADIENT_COPIES };
enum param_place { PLACE_FIRST, PLACE_BLOCK, PLACE_LAST };
enum param_init { INIT_ONES, INIT_ZEROS, INIT_NORMAL, INIT_RESIDUAL };
enum param_id {
#define PARAM(id, ...) P_##id,
#include "model/params.def"
#undef PARAM
    P_N
};

struct param_row {
    const char *id, *hf_name;
    enum param_layers layers;
    enum param_dim dim[3];
    int tp_axis, expert_axis;
    enum param_gradient gradient;
    enum param_place place;
    enum param_init init;
    int decayed, fuse;
};
extern const struct param_row param_rows[P_N];

/* The shape of the model, from the resolved input (vocab_size, head_dim, num_key_value_heads filled
 * in). */
struct dims {
    int64_t D, F, V, Vp; /* Vp: V rounded up to a multiple of tp */
    int H, G, K, L;
    int tp;
    int Hl, Gl;               /* per tp rank: H/tp, max(1, G/tp)      */
    int kv_copies;            /* tp ranks per key/value head: max(1, tp/G) */
    int64_t Fl, Vl;           /* F/tp, Vp/tp                          */
    int64_t qkv;              /* (Hl + 2 Gl) K                        */
    int bias, obias, mlpbias; /* of q, k, v; of the attention's output; of the feed-forward part */
    int qknorm, tied;
    double eps, rope_theta, init_range;
};
struct dims dims_of(const struct config *c, int tp) LOCAL;

struct param {
    const struct param_row *row;
    enum param_id id;
    int layer;     /* -1 outside the blocks */
    char name[96]; /* Hugging Face          */
    int number;    /* in the whole model's list, the same on all ranks: canonical order */
    int nd;
    int64_t global[3]; /* unpadded              */
    int64_t local[3];  /* as stored here, padding included */
    struct box box;    /* what of the global tensor is here; an extent may be 0 (all padding) or <
                          local (padded tail rows) */
    int64_t count;     /* local elements        */
    int writes; /* among tp ranks (and tied stages) this one counts it in the norm and writes it */
    int copies; /* > 1: that many tp ranks hold the same part and sum gradients (COPIES), tp for
                   PARTIAL, else 1 */
    int bucket; /* of this rank          */
    int64_t at; /* first element in the bucket */
};

/* A bucket is one block, the embedding, or final norm and head. A tied model has its embedding
 * matrix at both ends, the one at the last stage as a bucket of its own with tied = 1 (also when
 * both ends are on one rank). */
struct bucket {
    int first, n; /* params                */
    int layer;    /* -1                    */
    int tied; /* 0; 1: embedding bucket of a tied model at the first stage, 2: its copy at the last
               */
    int64_t count; /* elements              */
    int chunk;     /* of this rank          */
};

struct params {
    struct dims d;
    int n;
    struct param *p; /* this rank's, bucket by bucket */
    int nbuckets;
    struct bucket *b;
    int total;           /* tensors of the whole model (the tied copy not counted twice) */
    int64_t total_count; /* elements of the whole model */
};

/* first_layer[stages + 1] from the split; this rank holds stages stage[0..chunks-1]. Pure. */
void params_build(struct params *ps, const struct dims *d, int tp_rank, int stages,
                  const int *first_layer, const int *stage, int chunks) LOCAL;
void params_free(struct params *ps) LOCAL;
/* The whole model as one rank would hold it (tp 1): for merge, inspect, init_from. */
void params_build_whole(struct params *ps, const struct dims *d) LOCAL;
const struct param *params_find(const struct params *ps, enum param_id id,
                                int layer) LOCAL; /* NULL; of a tied pair the first stage's */
/* Initial values of elements of the global tensor inside `what`, row-major, as double: a function
 * of (seed, name's number, global index) only. */
void param_init_values(const struct dims *d, const struct param *p, uint64_t seed,
                       const struct box *what, double *out) LOCAL;
#endif
