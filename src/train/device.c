#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "compute/choose.h"
#include "parallel/agree.h"
#include "train/run.h"

void device_resolve(struct run *r)
{
    struct err why = { "" };
    int64_t without;

    if (r->c->run.device != DEVICE_AUTO)
        return;
    without = setup_find_device(r->c, r->g.node_rank, &why) != OK;
    if (r->g.rank == 0)
        snprintf(r->no_device, sizeof r->no_device, "%.*s", (int)sizeof r->no_device - 1, why.text);
    comm_sum_i64(r->g.world, &without, 1);
    r->c->run.device = without ? DEVICE_CPU : DEVICE_CUDA;
    if (r->g.rank == 0 && without && !r->no_device[0])
        snprintf(r->no_device, sizeof r->no_device, "%d of %d ranks have no GPU", (int)without,
                 r->g.ranks);
}

enum status device_open(struct run *r, int threads, struct err *e)
{
    enum status st = r->ops->queue_create(&r->q, threads, r->g.node_rank, e);
    char node[64] = "";

    if (st == OK && r->ops->device)
        r->ops->device(r->q, &r->device);
    if (st != OK && r->g.nodes > 1 && gethostname(node, sizeof node - 1) == 0)
        err_prefix(e, "on %s", node);
    return st;
}

/* Rank 0 chooses, the others follow; *taken [same]: the kernels. This rank's status. */
static enum status choose_attention(struct run *r, int word, int *taken, struct err *e)
{
    const struct config *c = r->c;
    const struct attention_shape *s = &r->s.env.att;
    struct attention_choice choice = { .deterministic = c->train.deterministic,
                                       .whole = !c->data.document_mask && r->g.cp == 1 &&
                                                !r->s.env.use };
    struct config_word w = config_word(KEY_debug_attention, word);
    enum status st = OK;

    choice.word = w.s;
    if (r->g.rank == 0)
        st = r->ops->attention_choose(r->q, &choice, s, r->s.t, e);
    *taken = config_choice(KEY_debug_attention, choice.word);
    comm_bytes_from(r->g.world, taken, sizeof *taken, 0);
    if (r->g.rank == 0) {
        snprintf(r->attention, sizeof r->attention, "attention by %s: %s",
                 *taken == ATTENTION_CUDNN ? "cuDNN" : "our own kernels",
                 word != ATTENTION_AUTO && word == r->attention_before ? "as before" : choice.why);
        return st;
    }
    w = config_word(KEY_debug_attention, *taken);
    return r->ops->attention_choose(r->q, &choice, s, r->s.t, e);
}

enum status device_choose_attention(struct run *r, struct err *e)
{
    int asked = r->c->debug.attention, before = r->attention_before;
    int *taken = &r->c->debug.attention;
    struct err why = { "" };
    enum status st = OK;

    if (!r->ops->attention_choose) {
        if (asked == ATTENTION_CUDNN)
            st = err_set(e, E_RESOURCE,
                         "debug.attention = 'cudnn' is for GPUs, and this run computes on the CPU");
        return agree(r->g.world, st, e);
    }
    if (before && !agree_any(r->g.world, choose_attention(r, before, taken, &why) != OK))
        return OK;
    if (before && r->g.rank == 0)
        warn("this run's kernels change here, and its results with them by rounding: %s",
             why.text[0] ? why.text : "attention was by cuDNN, which not every rank can do");
    r->attention_before = ATTENTION_AUTO;
    st = choose_attention(r, asked, taken, e);
    if (asked == ATTENTION_AUTO && agree_any(r->g.world, st != OK))
        st = choose_attention(r, ATTENTION_OWN, taken, e);
    return agree(r->g.world, st, e);
}

/* One rank's share of a device. */
struct share {
    struct ops_device device;
    int64_t need;
};

enum status device_check_memory(struct run *r, int64_t need, struct err *e)
{
    struct share mine, *all;
    int64_t sum = 0, left;

    if (!r->ops->device)
        return OK;
    r->ops->device(r->q, &r->device);
    memset(&mine, 0, sizeof mine);
    mine.device = r->device;
    mine.need = need;
    left = mine.device.memory_free;
    all = mem_take(sizeof *all * (size_t)r->g.node_ranks);
    comm_bytes_all(r->g.node, &mine, all, sizeof mine);
    r->device_ranks = 0;
    for (int i = 0; i < r->g.node_ranks; i++)
        if (memcmp(all[i].device.id, mine.device.id, sizeof mine.device.id) == 0) {
            r->device_ranks++;
            sum += all[i].need;
            left = min_i64(left, all[i].device.memory_free);
        }
    mem_give(all);
    if (sum <= left)
        return OK;
    return err_set(
        e, E_RESOURCE,
        "%d rank%s need %.2f GiB of the memory of a GPU (%s), of which %.2f GiB are free: use more "
        "GPUs, a larger tp or pp, or a smaller micro_batch_size; pretrain --plan shows where it "
        "goes",
        r->device_ranks, r->device_ranks == 1 ? "" : "s", (double)sum / 1073741824.0,
        r->device.text, (double)left / 1073741824.0);
}

enum status device_connect(struct run *r, struct err *e)
{
    static const enum comm_choice choices[] = {
        [COMMUNICATION_AUTO] = COMM_CHOICE_AUTO,
        [COMMUNICATION_NCCL] = COMM_CHOICE_NCCL,
        [COMMUNICATION_MPI] = COMM_CHOICE_MPI,
    };

    if (r->ops->device)
        return comm_device_open(&r->links, &r->s.g, &r->s.optim.tied_peer, r->device.id,
                                choices[r->c->debug.communication], (int)r->c->train.deterministic,
                                e);
    if (r->c->debug.communication != COMMUNICATION_NCCL)
        return OK;
    return err_set(
        e, E_RESOURCE,
        "debug.communication = 'nccl' is between GPUs, and this run computes on the CPU");
}

/* Cores: what all of the nodes reach together; where ranks share them, as many as there are cores
 * measure and the others sleep in the sum. GPUs: nominal, each once. */
void device_measure_peak(struct run *r)
{
    int64_t busy = max_i64(1, r->g.cores / r->s.threads);

    comm_barrier(r->g.world);
    if (r->ops->device)
        r->peak = r->ops->measure_peak(r->q, r->s.t, 0) / r->device_ranks;
    else if (r->g.node_rank < busy)
        r->peak = r->ops->measure_peak(r->q, r->s.t, 0.1);
    comm_sum_f64(r->g.world, &r->peak, 1);
}

void device_describe(const struct run *r, char *text, size_t bytes)
{
    if (r->ops->device && r->device_ranks > 1)
        snprintf(text, bytes, "%s; %d ranks share it; nominal peak", r->device.text,
                 r->device_ranks);
    else if (r->ops->device)
        snprintf(text, bytes, "%s; nominal peak", r->device.text);
    else if (r->no_device[0])
        snprintf(text, bytes, "CPU, %s; device = 'auto': %s", ops_describe(), r->no_device);
    else
        text[0] = 0;
}
