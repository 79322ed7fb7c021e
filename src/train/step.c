#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "optim/lr.h"
#include "parallel/agree.h"
#include "train/run.h"

/* A row of a batch: sample k of a corpus; k < 0: one that does not count. */
struct row {
    const struct corpus *corpus;
    int64_t k;
};
/* Row n of what is read: of the training data (set NULL), or of a validation set. */
static struct row row_at(const struct run *r, const struct corpus *set, int64_t n)
{
    struct mixture_draw d;

    if (set)
        return (struct row){ set,
                             n < min_i64(r->c->eval.batches * r->s.GB, set->samples) ? n : -1 };
    d = mixture_draw(&r->data.train, n);
    return (struct row){ d.corpus, d.sample };
}

/* Of this replica's in the batch that begins with row `first`. */
static int64_t first_row(const struct run *r, int64_t first)
{
    return first + r->g.dp_rank * (r->s.GB / r->g.dp);
}

/* This replica's rows of the training batch that begins with row `first` are read in the next step:
 * the system fetches them meanwhile. */
static void expect_rows(const struct run *r, int64_t first)
{
    int64_t n0 = first_row(r, first);

    for (int64_t n = n0; n < n0 + r->s.GB / r->g.dp; n++) {
        struct row row = row_at(r, NULL, n);

        corpus_will_need(row.corpus, row.k);
    }
}

/* This replica's rows of the batch that begins with row `first`, micro-batch by micro-batch. Adds
 * up *counted labels. */
static enum status load_rows(struct run *r, const struct corpus *set, int64_t first,
                             int64_t *counted, struct err *e)
{
    const struct setup *s = &r->s;
    int64_t n0 = first_row(r, first);
    enum status st = OK;

    *counted = 0;
    r->data_seconds = 0;
    for (int m = 0; m < s->mbs && st == OK; m++) {
        double start = clock_now();

        for (int64_t b = 0; b < s->B && st == OK; b++) {
            struct row row = row_at(r, set, n0 + m * s->B + b);

            st = batch_fill(row.corpus, &r->rows, (int)b, row.k, r->c->data.document_mask,
                            r->c->data.mask_seams, e);
        }
        for (int64_t t = 0; t < s->B * s->S && st == OK; t++)
            *counted += r->rows.labels[t] >= 0;
        r->data_seconds += clock_now() - start;
        if (st == OK)
            pipeline_upload(&r->s.pipe, m, r->rows.ids, r->rows.labels, r->rows.place,
                            r->rows.start, r->rows.position);
    }
    return st;
}

static void use_length(struct run *r, int64_t S)
{
    if (r->s.S != S)
        setup_use_length(&r->s, S);
}

/* One voice of each replica: what all ranks of a replica know alike is counted once. */
static int speaks_for_replica(const struct grid *g)
{
    return g->tp_rank == 0 && g->pp_rank == 0 && g->cp_rank == 0;
}

/* Counted labels of the global batch, whether a rank failed to read, whether one was asked to stop:
 * one small sum. */
static enum status gather_counts(struct run *r, enum status st, int64_t counted, int64_t out[2],
                                 struct err *e)
{
    int64_t x[3] = { speaks_for_replica(&r->g) ? counted : 0, st != OK,
                     watch_stop_asked(r->c->run.directory, r->g.rank) };

    comm_sum_i64(r->g.world, x, 3);
    if (x[1] > 0)
        return agree_silent(r->g.world, st, e);
    out[0] = x[0];
    out[1] = x[2] > 0;
    return OK;
}

/* Loss summed over replicas; means over the ranks of the share of the time that they waited for the
 * pipeline, and of the seconds that they read data. */
static void gather_loss(struct run *r, double seconds, double *loss, double *bubble, double *data)
{
    double x[3] = { 0, r->s.pipe.waited / (seconds > 0 ? seconds : 1), r->data_seconds };

    r->ops->download(r->q, &x[0], r->s.pipe.loss, sizeof(double));
    r->ops->sync(r->q);
    if (r->g.tp_rank != 0)
        x[0] = 0;
    comm_sum_f64(r->g.world, x, 3);
    *loss = x[0];
    *bubble = x[1] / r->g.ranks;
    *data = x[2] / r->g.ranks;
}

/* Else some are printed as -nan. */
static double unsigned_nan(double x)
{
    return isnan(x) ? NAN : x;
}

/* What to do with a step's loss and norm, which all ranks know alike: update, skip, or end. */
static enum status judge(struct run *r, struct step_result *out, int64_t step, struct err *e)
{
    int overflow = r->rule.init > 0 && isfinite(out->loss) && !isfinite(out->norm);
    double before = r->scale.scale;

    if (!overflow && (!isfinite(out->loss) || !isfinite(out->norm)))
        return err_set(e, E_NUMERIC,
                       "step %" PRId64
                       ": loss %g, gradient norm %g: stopped before the update, the "
                       "weights are those of step %" PRId64
                       "; a lower learning_rate or a longer warm-up usually helps",
                       step, unsigned_nan(out->loss), unsigned_nan(out->norm), r->step);
    if (r->rule.init == 0)
        return OK;
    if (!loss_scale_next(&r->scale, &r->rule, overflow))
        return err_set(e, E_NUMERIC,
                       "step %" PRId64 ": the gradient overflows float16 even with a loss scale of "
                       "1: stopped before the update, the weights are those of step %" PRId64
                       "; a lower learning_rate or dtype = 'bfloat16' usually helps",
                       step, r->step);
    out->skipped = overflow;
    if (overflow)
        warn("step %" PRId64 ": the gradient overflows float16: step skipped (%" PRId64
             " of %" PRId64 " so far), loss scale %.10g -> %.10g",
             step, step - r->s.optim.t, step, before, r->scale.scale);
    return OK;
}

enum status run_step(struct run *r, struct step_result *out, struct err *e)
{
    int64_t counts[2] = { 0 }, counted, step = r->step + 1;
    struct optim_step o = { .lr = lr_at(r->c, step),
                            .beta1 = r->c->optim.adam_beta1,
                            .beta2 = r->c->optim.adam_beta2,
                            .eps = r->c->optim.adam_eps,
                            .weight_decay = r->c->optim.weight_decay,
                            .clip = r->c->optim.clip_grad,
                            .scale = r->scale.scale };
    double start;
    enum status st;

    use_length(r, sources_length(r->c, step));
    st = load_rows(r, NULL, r->step * r->s.GB, &counted, e);
    if ((st = gather_counts(r, st, counted, counts, e)) != OK)
        return st;
    *out = (struct step_result){ .lr = o.lr,
                                 .valid_tokens = counts[0],
                                 .stop = (int)counts[1],
                                 .loss = NAN,
                                 .norm = NAN,
                                 .data_seconds = NAN,
                                 .scale = r->rule.init > 0 ? r->scale.scale : NAN,
                                 .skipped = counts[0] == 0 };
    if (out->skipped) {
        r->step = step;
        return OK;
    }
    if (step < r->c->train.train_steps)
        expect_rows(r, step * r->s.GB);
    start = clock_now();
    r->s.pipe.step = step;
    optim_zero_gradients(&r->s.optim);
    pipeline_train(&r->s.pipe, o.scale / (double)counts[0]);
    gather_loss(r, clock_now() - start, &out->loss, &out->bubble, &out->data_seconds);
    out->loss /= (double)counts[0];
    optim_finish_reduce(&r->s.optim);
    out->norm = optim_gradient_norm(&r->s.optim) / o.scale;
    if ((st = judge(r, out, step, e)) != OK)
        return st;
    if (!out->skipped)
        optim_update(&r->s.optim, &o, out->norm);
    r->step = step;
    return OK;
}

enum status run_evaluate(struct run *r, const struct corpus *set, double *loss, struct err *e)
{
    int64_t used = min_i64(r->c->eval.batches * r->s.GB, set->samples), all = 0;
    double sum = 0;

    use_length(r, set->S);
    for (int64_t first = 0; first < used; first += r->s.GB) {
        int64_t counted, counts[2];
        double part, bubble, data;
        enum status st = load_rows(r, set, first, &counted, e);

        if ((st = gather_counts(r, st, counted, counts, e)) != OK)
            return st;
        pipeline_evaluate(&r->s.pipe);
        gather_loss(r, 1, &part, &bubble, &data);
        sum += part;
        all += counts[0];
    }
    *loss = all ? sum / (double)all : NAN;
    return OK;
}
