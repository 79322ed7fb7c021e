#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "model/geometry.h"
#include "parallel/agree.h"
#include "train/plan.h"
#include "train/run.h"

/* ---- checkpoints ---- */

static enum status save(struct run *r, struct err *e)
{
    const struct config *c = r->c;
    const struct tokens *t = sources_tokenizer(&r->data);
    struct checkpoint_scalars s = { .step = r->step,
                                    .samples = r->step * r->s.GB,
                                    .tokens = sources_tokens(c, r->step),
                                    .adam_t = r->s.optim.t,
                                    .loss = r->rule.init > 0 ? r->scale : (struct loss_scale){ 0 },
                                    .attempt = r->attempt,
                                    .zero_stage = (int)r->c->parallel.zero_stage };
    struct checkpoint_texts x = { r->input_nml, t->tokenizer_json, t->tokenizer_bytes,
                                  sources_eod(&r->data), r->identity };
    enum status st;

    if (r->saved == r->step)
        return OK;
    st = checkpoint_save(c->run.directory, &r->g, r->s.optim.state_ops, r->s.optim.state_q,
                         &r->s.params, r->s.optim.pieces, r->s.optim.npieces, &s, &x, e);
    if (st == OK) {
        r->saved = r->step;
        st = checkpoint_retain(c->run.directory, &r->g, (int)c->checkpoint.keep_last,
                               c->checkpoint.keep_every, e);
    }
    if (st == OK || c->checkpoint.on_error == ON_ERROR_STOP)
        return st;
    warn("%s; training goes on (checkpoint.on_error = 'continue')", e->text);
    e->text[0] = 0;
    return OK;
}

/* ---- one line a step ---- */

static void fill_report(const struct run *r, const struct step_result *s, double seconds,
                        struct step_report *out)
{
    double tokens = (double)(r->s.GB * r->s.S), done = (double)(r->c->train.train_steps - r->step);

    *out = (struct step_report){
        .step = r->step,
        .last_step = r->c->train.train_steps,
        .valid_tokens = s->valid_tokens,
        .samples = r->step * r->s.GB,
        .tokens = sources_tokens(r->c, r->step),
        .attempt = r->attempt,
        .loss = s->loss,
        .grad_norm = s->norm,
        .learning_rate = s->lr,
        .nvalidations = 0,
        .skipped = s->skipped,
        .loss_scale = s->scale,
        .seconds = seconds,
        .tokens_per_second = tokens / seconds,
        .flops_per_second = tokens * geometry_flops_per_token(&r->s.d, r->s.S) / seconds,
        .bubble = s->bubble,
        .data_seconds = s->data_seconds,
        .left = done * r->step_seconds,
    };
    out->peak_fraction = out->flops_per_second / r->peak;
}

static enum status report(struct run *r, const struct step_report *s, struct err *e)
{
    int last = s->step == s->last_step;
    enum status st = OK;

    if (r->g.rank == 0) {
        st = metrics_write(&r->metrics, s, e);
        if (s->step % r->c->log.interval == 0 || last || s->nvalidations > 0)
            console_step(s);
        if (!last)
            console_live(s);
    }
    return agree_silent(r->g.world, st, e);
}

/* ---- the loop ---- */

/* All validation sets. */
static enum status evaluate(struct run *r, struct step_report *line, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < r->data.nvalidations && st == OK; i++) {
        struct step_validation *v = &line->validation[line->nvalidations++];

        v->key = r->data.validation[i].key;
        v->said = r->data.validation[i].name;
        st = run_evaluate(r, &r->data.validation[i].corpus, &v->loss, e);
    }
    return st;
}

static enum status one_step(struct run *r, int *stop, struct err *e)
{
    const struct config *c = r->c;
    struct step_result s;
    struct step_report line;
    double start = clock_now(), seconds;
    int64_t requests = mem_requests();
    enum status st = run_step(r, &s, e);

    if (st != OK)
        return st;
    BUG_IF(r->steps_here++ > 0 && mem_requests() != requests); /* a step allocates nothing */
    seconds = clock_now() - start;
    r->step_seconds = r->step_seconds > 0 ? 0.9 * r->step_seconds + 0.1 * seconds : seconds;
    fill_report(r, &s, seconds, &line);
    *stop = s.stop;
    if (c->eval.interval > 0 &&
        (r->step % c->eval.interval == 0 || r->step == c->train.train_steps))
        if ((st = evaluate(r, &line, e)) != OK)
            return st;
    if ((st = report(r, &line, e)) != OK)
        return st;
    if (c->checkpoint.interval > 0 && r->step % c->checkpoint.interval == 0)
        st = save(r, e);
    return st;
}

static enum status loop(struct run *r, struct err *e)
{
    const struct config *c = r->c;
    int stop = 0, ran = r->step < c->train.train_steps;
    enum status st = OK;

    if (c->checkpoint.save_initial && (r->step == 0 || r->resumed_elsewhere))
        st = save(r, e);
    if (st == OK && ran)
        console_head();
    else if (st == OK)
        say("nothing to do: '%s' is at step %" PRId64 " of %" PRId64, r->resume_from, r->step,
            c->train.train_steps);
    while (st == OK && r->step < c->train.train_steps && !stop)
        st = one_step(r, &stop, e);
    if (st != OK)
        return st;
    if (stop && r->step < c->train.train_steps) {
        st = save(r, e);
        return st != OK
                   ? st
                   : err_set(e, E_STOP,
                             "stopped after step %" PRId64 " as asked, %s: start again to go on",
                             r->step,
                             r->saved == r->step ? "checkpoint written" : "without a checkpoint");
    }
    return c->checkpoint.save_final && ran ? save(r, e) : OK;
}

static void say_end(struct run *r, enum status st, const struct err *e)
{
    const char *dir = r->c->run.directory;

    if (st == OK) {
        if (r->steps_here > 0 && !r->ops->memory)
            say("memory  grew by %.1f MiB, %.1f MiB were planned (rank 0)",
                (double)(mem_resident() - r->resident) / 1048576.0,
                (double)setup_bytes(&r->s) / 1048576.0);
        directory_mark(r, "RUN_COMPLETE", "step %" PRId64 "\n", r->step);
        if (r->saved < 0)
            say("done: step %" PRId64 ", no checkpoint written", r->step);
        else
            say("done: step %" PRId64 "; newest checkpoint %s/step_%08" PRId64, r->step, dir,
                r->saved);
        return;
    }
    if (st != E_STOP)
        directory_mark(r, "RUN_FAILED", "code %d\n%s\n", (int)st, e->text);
    complain("%s", e->text);
}

enum status train_main(struct comm *world, const struct run_request *q)
{
    struct err *e = mem_take(sizeof *e);
    struct run *r = mem_take(sizeof *r);
    enum status st;

    log_speaker(world->rank == 0);
    r->c = mem_take(sizeof *r->c);
    r->saved = -1;
    watch_start();
    st = run_begin(r, world, q, e);
    if (st == OK && (st = directory_open(r, e)) == OK) {
        checkpoint_clean(r->c->run.directory, &r->g);
        if (world->rank == 0)
            plan_print_screen(r);
        st = loop(r, e);
        say_end(r, st, e);
        die_set_mark(NULL);
        metrics_close(&r->metrics, NULL);
        log_open(NULL, NULL);
    }
    if (r->s.c)
        run_end(r);
    if (r->g.world)
        grid_free(&r->g);
    mem_give(r->c);
    mem_give(r);
    mem_give(e);
    return st;
}
