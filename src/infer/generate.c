/* Continues prompts. The sequences of a unit, and the units of a pass, go on together, each from
 * its own place; keys and values of what they have read stay with the ranks. A record: of each
 * sequence of the unit how many tokens are new, whether the last one ends the text, and the tokens
 * (int32). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "infer/lines.h"
#include "infer/prompts.h"
#include "infer/sample.h"

enum { PASS_TOKENS = 512 }; /* of prompts, read at once */

struct sequence {
    int64_t prompt;    /* its number, -1: a row that nobody asked for */
    int64_t first;     /* tokens of the prompt                        */
    int64_t n, end;    /* tokens now, and at most                     */
    int ended, wanted; /* wanted: this pass shows its next token   */
    int32_t *ids;      /* [longest]                                */
};

struct generate {
    struct sample_rule rule;
    int64_t longest;           /* tokens of a sequence, prompt and new ones    */
    struct sequence *sequence; /* [in_flight][rows of a micro-batch]           */
    int64_t nsequences;
    int32_t *all_ids, *kept_at, *rows;
    struct answer { /* from the leader to its replica */
        int32_t status;
        int32_t next[]; /* [nsequences] */
    } * answer;
    size_t answer_bytes;
    void *logits, *row; /* the leader's: of a micro-batch; of one token */
    struct sample_candidate *room;
    int64_t new_tokens; /* made by this replica */
    double started;
};

/* ---- prompts, rank 0 ---- */

static int64_t end_of(const struct work *w, int64_t prompt)
{
    return min_i64(items_length(&w->items, prompt) + w->o->max_new, w->model.positions);
}

static int64_t longest_of(const struct work *w)
{
    int64_t most = 1;

    for (int64_t i = 0; i < w->items.n; i++)
        most = max_i64(most, end_of(w, i));
    return most;
}

static enum status read(struct work *w, struct err *e)
{
    const struct infer_options *o = w->o;
    enum status st = prompts_read(w, e);

    if (st != OK)
        return st;
    w->nrows = w->items.n;
    w->B = min_i64(o->batch ? o->batch : 8, w->nrows);
    w->new_tokens = o->max_new;
    w->S = o->no_cache ? longest_of(w)
                       : min_i64(max_i64(1, PASS_TOKENS / w->B), items_longest(&w->items));
    work_note(w,
              "max %" PRId64 ", temperature %.17g, top k %" PRId64 ", top p %.17g, seed %" PRId64
              ", cache %d",
              o->max_new, o->temperature, o->top_k, o->top_p, o->seed, !o->no_cache);
    return OK;
}

/* ---- all ranks ---- */

static void ask(struct work *w)
{
    w->use.logits = 1;
    w->use.rows = w->r.c->train.micro_batch_size;
    w->use.kept = w->o->no_cache ? 0 : longest_of(w);
}

static enum status begin(struct work *w, struct err *e)
{
    const struct infer_options *o = w->o;
    const struct env *env = &w->r.s.env;
    struct generate *own = w->own;
    size_t size = dtype_size(env->stat);

    (void)e;
    own->rule = (struct sample_rule){ o->temperature, o->top_k, o->top_p, (uint64_t)o->seed };
    own->longest = longest_of(w);
    own->nsequences = w->in_flight * env->B;
    own->sequence = mem_take(sizeof *own->sequence * (size_t)own->nsequences);
    own->all_ids = mem_take(sizeof *own->all_ids * (size_t)(own->nsequences * own->longest));
    for (int64_t i = 0; i < own->nsequences; i++)
        own->sequence[i].ids = own->all_ids + i * own->longest;
    own->kept_at = mem_take(sizeof *own->kept_at * (size_t)env->T);
    own->rows = mem_take(sizeof *own->rows * (size_t)env->B);
    own->answer_bytes = sizeof *own->answer + sizeof(int32_t) * (size_t)own->nsequences;
    own->answer = mem_take(own->answer_bytes);
    own->started = clock_now();
    if (!work_leads(w))
        return OK;
    own->logits = mem_take(size * (size_t)(env->B * env->d.Vp));
    own->row = mem_take(size * (size_t)env->d.V);
    own->room = mem_take(sizeof *own->room * (size_t)env->d.V);
    return OK;
}

static void end(struct work *w)
{
    struct generate *own = w->own;
    void *const all[] = { own->sequence, own->all_ids, own->kept_at, own->rows,
                          own->answer,   own->logits,  own->row,     own->room };

    for (int i = 0; i < COUNT_OF(all); i++)
        mem_give(all[i]);
}

/* ---- one forward pass ---- */

/* Places first .. first+S-1 of row b; what lies behind the sequence's tokens is seen by nobody. */
static void fill_row(struct work *w, const struct sequence *s, int64_t b, int64_t first)
{
    struct generate *own = w->own;
    const struct env *env = &w->r.s.env;
    struct batch_rows *rows = &w->r.rows;

    for (int64_t t = 0; t < env->S; t++) {
        int64_t at = b * env->S + t, place = first + t;
        int real = place < s->n;
        rows->ids[at] = real ? s->ids[place] : 0;
        rows->labels[at] = -1;
        rows->place[at] = (int32_t)place;
        rows->start[at] = 0;
        rows->position[at] = (int32_t)min_i64(place, own->longest - 1);
        own->kept_at[at] = real && !s->ended ? (int32_t)(b * own->longest + place) : -1;
    }
}

/* Of every sequence S tokens from `first` on; first < 0: from its last token on. */
static void forward(struct work *w, int64_t first, int64_t S)
{
    struct generate *own = w->own;
    struct env *env = &w->r.s.env;
    struct pipeline *p = &w->r.s.pipe;
    const struct batch_rows *r = &w->r.rows;

    env_use_length(env, S);
    for (int m = 0; m < w->in_flight; m++) {
        for (int64_t b = 0; b < env->B; b++) {
            struct sequence *s = &own->sequence[m * env->B + b];
            int64_t last = max_i64(0, s->n - 1), from = first < 0 ? last : first;
            fill_row(w, s, b, from);
            s->wanted = !s->ended && last >= from && last < from + S;
            own->rows[b] = (int32_t)(b * S + (s->wanted ? last - from : 0));
        }
        pipeline_upload(p, m, r->ids, r->labels, r->place, r->start, r->position);
        pipeline_upload_rows(p, m, own->rows);
        if (env->use->kept)
            pipeline_upload_kept(p, m, own->kept_at);
    }
    pipeline_evaluate(p);
}

/* ---- the next tokens ---- */

static enum status choose_in(struct work *w, int m, struct err *e)
{
    struct generate *own = w->own;
    const struct env *env = &w->r.s.env;
    int64_t B = env->B;

    env->ops->download(env->q, own->logits, w->r.s.pipe.mb[m].logits.p,
                       (size_t)(B * env->d.Vp) * dtype_size(env->stat));
    env->ops->sync(env->q);
    for (int64_t b = 0; b < B; b++) {
        const struct sequence *s = &own->sequence[m * B + b];
        int32_t *next = &own->answer->next[m * B + b];
        if (!s->wanted)
            continue;
        *next = sample_token(&own->rule, head_unpack(env, own->logits, B, b, own->row), env->stat,
                             env->d.V, (uint64_t)s->prompt, (uint64_t)s->n, own->room);
        if (*next < 0)
            return err_set(e, E_NUMERIC,
                           "prompt %" PRId64 ", token %" PRId64 ": the logits are not numbers; are "
                           "the weights?",
                           s->prompt, s->n);
    }
    return OK;
}

/* The leader chooses, and all ranks of the replica know. */
static enum status choose(struct work *w, struct err *e)
{
    struct generate *own = w->own;
    const struct grid *g = &w->r.g;
    enum status st = OK;

    if (work_leads(w)) {
        st = work_stop_asked(w, e);
        for (int m = 0; m < w->in_flight && st == OK; m++)
            st = choose_in(w, m, e);
        own->answer->status = (int32_t)st;
    }
    comm_bytes_from(g->model, own->answer, own->answer_bytes, (g->pp - 1) * g->tp);
    if (own->answer->status != OK)
        return (enum status)own->answer->status;
    for (int64_t i = 0; i < own->nsequences; i++) {
        struct sequence *s = &own->sequence[i];
        if (!s->wanted)
            continue;
        s->ids[s->n++] = own->answer->next[i];
        s->ended = s->n == s->end || s->ids[s->n - 1] == w->model.eos;
        own->new_tokens++;
    }
    return OK;
}

/* ---- a pass ---- */

static void begin_sequences(struct work *w, const int64_t *units, int n)
{
    struct generate *own = w->own;
    const struct items *t = &w->items;
    int64_t B = w->r.s.B;

    for (int64_t i = 0; i < own->nsequences; i++) {
        struct sequence *s = &own->sequence[i];
        int64_t m = i / B, b = i % B, k = m < n ? work_first(w, units[m]) + b : 0;
        int there = m < n && b < work_rows(w, units[m]);
        s->prompt = there ? k : -1;
        s->first = s->n = there ? items_length(t, k) : 0;
        s->end = there ? end_of(w, k) : 0;
        s->ended = s->n == s->end;
        if (there)
            memcpy(s->ids, t->ids + t->first[k], sizeof *s->ids * (size_t)s->n);
    }
}

/* Most tokens of the sequences that go on; 0: none does. */
static int64_t reach(const struct generate *own)
{
    int64_t most = 0;

    for (int64_t i = 0; i < own->nsequences; i++)
        if (!own->sequence[i].ended)
            most = max_i64(most, own->sequence[i].n);
    return most;
}

/* The prompts, some tokens of each at a time; a sequence's first new token comes with its end. */
static enum status read_prompts(struct work *w, struct err *e)
{
    const struct generate *own = w->own;
    int64_t longest = reach(own);
    enum status st = OK;

    for (int64_t at = 0; at < longest && st == OK; at += w->S) {
        forward(w, at, w->S);
        st = choose(w, e);
    }
    return st;
}

static enum status keep(struct work *w, int64_t unit, int m, struct err *e)
{
    const struct generate *own = w->own;
    const struct sequence *s = own->sequence + m * w->r.s.B;
    int64_t rows = work_rows(w, unit), bytes = 0;
    enum status st;

    for (int64_t b = 0; b < rows; b++)
        bytes += (int64_t)sizeof(int32_t) * (2 + s[b].n - s[b].first);
    st = parts_begin(&w->parts, unit, bytes, e);
    for (int64_t b = 0; b < rows && st == OK; b++) {
        int64_t n = s[b].n - s[b].first;
        int32_t head[2] = { (int32_t)n, n > 0 && s[b].ids[s[b].n - 1] == w->model.eos };
        st = parts_put(&w->parts, head, sizeof head, e);
        if (st == OK)
            st = parts_put(&w->parts, s[b].ids + s[b].first, n * (int64_t)sizeof *s[b].ids, e);
    }
    return st == OK ? parts_end(&w->parts, e) : st;
}

static enum status pass(struct work *w, const int64_t *units, int n, struct err *e)
{
    const struct generate *own = w->own;
    int64_t longest, requests = mem_requests();
    enum status st = OK;

    begin_sequences(w, units, n);
    if (!w->o->no_cache)
        st = read_prompts(w, e);
    while (st == OK && (longest = reach(own)) > 0) {
        if (w->o->no_cache)
            forward(w, 0, longest);
        else
            forward(w, -1, 1);
        st = choose(w, e);
    }
    BUG_IF(w->passes++ > 0 && mem_requests() != requests); /* a token allocates nothing */
    for (int m = 0; m < n && st == OK && work_leads(w); m++)
        st = keep(w, units[m], m, e);
    return st;
}

/* ---- the file ---- */

/* The text of the new tokens, as it follows the prompt. */
static enum status put_answer(struct work *w, struct lines *l, int64_t prompt, const int32_t *ids,
                              int64_t n, struct err *e)
{
    struct generate *own = w->own;
    int64_t first = items_length(&w->items, prompt);
    const char *text;
    size_t bytes;
    enum status st;

    memcpy(own->all_ids, w->items.ids + w->items.first[prompt], sizeof *ids * (size_t)first);
    memcpy(own->all_ids + first, ids, sizeof *ids * (size_t)n);
    st = codec_decode(w->codec, own->all_ids, first + n, first, &text, &bytes, e);
    if (st != OK)
        return st;
    json_text_add(&l->t, ", \"text\": ");
    prompts_put_text(&l->t, text, bytes);
    return OK;
}

static enum status put_sequence(struct work *w, struct lines *l, int64_t prompt, const int32_t *ids,
                                int64_t n, int eos, struct err *e)
{
    enum status st = OK;

    json_text_add(&l->t, "{\"index\": %" PRId64 ", \"prompt_tokens\": %" PRId64 ", \"ids\": [",
                  prompt, items_length(&w->items, prompt));
    for (int64_t i = 0; i < n; i++)
        json_text_add(&l->t, "%s%d", i ? ", " : "", (int)ids[i]);
    json_text_add(&l->t, "]");
    if (codec_check(w->codec, NULL) == OK)
        st = put_answer(w, l, prompt, ids, n - eos, e);
    if (st != OK)
        return st;
    json_text_add(&l->t, ", \"finish\": \"%s\"}", eos ? "eos" : "length");
    return lines_end_line(l, e);
}

static enum status put_unit(struct work *w, struct lines *l, int64_t unit, int64_t *tokens,
                            struct err *e)
{
    int64_t bytes = parts_bytes(&w->parts, unit), at = 0;
    int32_t *x = mem_take((size_t)bytes);
    enum status st = parts_read(&w->parts, unit, 0, x, bytes, e);

    for (int64_t b = 0; b < work_rows(w, unit) && st == OK; b++) {
        st = put_sequence(w, l, work_first(w, unit) + b, x + at + 2, x[at], x[at + 1], e);
        *tokens += x[at];
        at += 2 + x[at];
    }
    mem_give(x);
    return st;
}

static enum status finish(struct work *w, const char *path, struct err *e)
{
    const struct generate *own = w->own;
    double seconds = clock_now() - own->started;
    struct lines l;
    int64_t tokens = 0;
    char n[32], m[32];
    enum status st = lines_open(&l, path, e);

    for (int64_t u = 0; u < w->units && st == OK; u++)
        st = put_unit(w, &l, u, &tokens, e);
    st = lines_close(&l, st, e);
    if (st == OK)
        say("%s: %s prompt%s, %s new tokens; %.3g tokens/s of each copy of the model", w->o->out,
            log_thousands(n, w->nrows), w->nrows == 1 ? "" : "s", log_thousands(m, tokens),
            (double)own->new_tokens / fmax(seconds, 1e-9));
    return st;
}

enum status infer_generate(struct comm *world, const struct infer_options *o)
{
    static const struct work_kind kind = { .name = "generate",
                                           .read = read,
                                           .ask = ask,
                                           .begin = begin,
                                           .pass = pass,
                                           .finish = finish,
                                           .end = end };
    struct generate own = { 0 };

    return work_run(world, o, &kind, &own);
}
