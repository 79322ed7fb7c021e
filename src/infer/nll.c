/* Negative log likelihoods, in nats: of the tokens and documents of a token file, or of the answers
 * to choose from. A record holds the losses of a unit's scored labels, as doubles; not a number:
 * the label does not count. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "infer/lines.h"
#include "infer/windows.h"

struct nll {
    void *losses;   /* [T] as downloaded; the leader's */
    double *scored; /* of a window                     */
    int64_t *right; /* rank 0, choices: the answer of each question, -1: not known */
    int64_t nright, room;
};

static int of_choices(const struct infer_options *o)
{
    return work_is_jsonl(o->input[0]);
}

/* ---- inputs ---- */

struct line { /* of a file of questions */
    struct work *w;
    const json_t *object;
    const char *where;
    int64_t start; /* of the context, an item that becomes the first choice */
};

/* One of the two members NAME (a text) and NAME_ids, else an error. */
static enum status put_member(struct line *l, const json_t *of, const char *name, int start,
                              struct err *e)
{
    if (json_is_string(of))
        return items_put_text(&l->w->items, l->w->codec, of, start, l->where, e);
    if (json_is_array(of))
        return items_put_list(&l->w->items, of, l->where, e);
    return err_set(e, E_FILE, "%s: \"%s\" is neither a text nor a list of ids", l->where, name);
}

/* An empty context is what stands before a document: the end of another. */
static enum status put_context(struct line *l, struct err *e)
{
    struct items *t = &l->w->items;
    int32_t end = (int32_t)l->w->model.eos;
    enum status st = put_member(l, json_object_get(l->object, "context"), "context", 1, e);

    if (st == OK && t->first[t->n] == t->first[t->n - 1]) {
        if (end < 0)
            return err_set(e, E_FILE,
                           "%s: the context is empty, and the model has no end-of-document token "
                           "that could stand for it",
                           l->where);
        items_put(t, &end, 1);
    }
    return st;
}

static enum status put_choice(struct line *l, size_t i, int64_t question, struct err *e)
{
    struct work *w = l->w;
    struct items *t = &w->items;
    struct items_limits limits = { w->model.vocab_size, w->model.positions };
    enum status st;

    items_begin(t, question);
    if ((st = put_context(l, e)) != OK)
        return st;
    t->from[t->n - 1] = t->nids - t->first[t->n - 1];
    st = put_member(l, json_array_get(json_object_get(l->object, "choices"), i), "choices", 0, e);
    if (st == OK && items_length(t, t->n - 1) == t->from[t->n - 1])
        st = err_set(e, E_FILE, "%s: choice %zu is empty", l->where, i);
    return st == OK ? items_check(t, &limits, l->where, e) : st;
}

static enum status take_answer(struct line *l, size_t choices, struct err *e)
{
    struct nll *own = l->w->own;
    const json_t *answer = json_object_get(l->object, "answer");
    double v = json_is_number(answer) ? json_number_value(answer) : -1;

    if (answer && (v != floor(v) || v < 0 || v >= (double)choices))
        return err_set(e, E_FILE, "%s: \"answer\" is not one of 0 .. %zu", l->where, choices - 1);
    if (own->nright == own->room) {
        int64_t room = max_i64(64, 2 * own->room);
        own->right = mem_grow(own->right, sizeof *own->right * (size_t)own->room,
                              sizeof *own->right * (size_t)room);
        own->room = room;
    }
    own->right[own->nright++] = (int64_t)v;
    return OK;
}

static enum status read_question(void *context, const json_t *object, const char *where,
                                 struct err *e)
{
    struct line l = { .w = context, .object = object, .where = where };
    struct nll *own = l.w->own;
    size_t n = json_array_size(json_object_get(object, "choices"));
    int64_t question = own->nright;
    enum status st;

    if (n == 0)
        return err_set(e, E_FILE,
                       "%s: no list \"choices\", as in {\"context\": \"2 + 2 is\", \"choices\": "
                       "[\" 4\", \" 5\"], \"answer\": 0}",
                       where);
    st = take_answer(&l, n, e);
    for (size_t i = 0; i < n && st == OK; i++)
        st = put_choice(&l, i, question, e);
    return st;
}

static enum status read_choices(struct work *w, struct err *e)
{
    const struct infer_options *o = w->o;
    enum status st = OK;

    if (o->length || o->stride || o->mask >= 0 || o->each_token)
        return err_set(e, E_INPUT,
                       "--sequence-length, --stride, --document-mask and --each-token go with a "
                       "token file, not with choices");
    w->codec = codec_open(w->model.tokenizer_json, w->model.tokenizer_bytes, o->model);
    for (int i = 0; i < o->ninputs && st == OK; i++) {
        st = work_note_input(w, o->input[i], e);
        if (st == OK)
            st = items_read(o->input[i], read_question, w, e);
    }
    return st == OK ? windows_of_items(w, e) : st;
}

static enum status read_tokens(struct work *w, struct err *e)
{
    const struct infer_options *o = w->o;
    enum status st = windows_open(w, e);
    int64_t labels = w->tokens.count - 1;

    if (st != OK)
        return st;
    if (labels < 1)
        return err_set(e, E_FILE, "%s: one token has no likelihood: nothing stands before it",
                       w->tokens.path);
    if (o->stride > w->S)
        return err_set(e, E_INPUT, "--stride %" PRId64 " is above the sequence length %" PRId64,
                       o->stride, w->S);
    w->stride = o->stride ? o->stride : w->S;
    w->nrows = 1 + (labels > w->S ? ceil_div(labels - w->S, w->stride) : 0);
    work_note(w, "stride %" PRId64 ", mask %d", w->stride, o->mask >= 0 ? o->mask : w->model.mask);
    return OK;
}

static enum status read(struct work *w, struct err *e)
{
    return of_choices(w->o) ? read_choices(w, e) : read_tokens(w, e);
}

static void ask(struct work *w)
{
    w->use.token_loss = 1;
}

/* ---- passes ---- */

static enum status begin(struct work *w, struct err *e)
{
    const struct env *env = &w->r.s.env;
    struct nll *own = w->own;

    (void)e;
    own->losses = mem_take((size_t)env->T * dtype_size(env->stat));
    own->scored = mem_take(sizeof *own->scored * (size_t)env->S);
    return OK;
}

static enum status keep_window(struct work *w, int64_t unit, int64_t b, struct err *e)
{
    const struct env *env = &w->r.s.env;
    struct nll *own = w->own;
    struct windows_row x = windows_at(w, work_first(w, unit) + b);
    const char *from = own->losses;
    int64_t at = b * env->S + x.scored;

    dtype_convert(own->scored, F64, from + (size_t)at * dtype_size(env->stat), env->stat,
                  x.nscored);
    for (int64_t i = 0; i < x.nscored; i++)
        if (w->r.rows.labels[at + i] < 0)
            own->scored[i] = NAN;
    return parts_put(&w->parts, own->scored, x.nscored * (int64_t)sizeof *own->scored, e);
}

static enum status keep(struct work *w, int64_t unit, const struct micro_batch *mb, struct err *e)
{
    const struct env *env = &w->r.s.env;
    struct nll *own = w->own;
    int64_t n = 0;
    enum status st = windows_fill(w, unit, e); /* the labels again */

    for (int64_t b = 0; b < work_rows(w, unit); b++)
        n += windows_at(w, work_first(w, unit) + b).nscored;
    env->ops->download(env->q, own->losses, mb->token_loss.p,
                       (size_t)env->T * dtype_size(env->stat));
    env->ops->sync(env->q);
    if (st == OK)
        st = parts_begin(&w->parts, unit, n * (int64_t)sizeof(double), e);
    for (int64_t b = 0; b < work_rows(w, unit) && st == OK; b++)
        st = keep_window(w, unit, b, e);
    return st == OK ? parts_end(&w->parts, e) : st;
}

static enum status pass(struct work *w, const int64_t *units, int n, struct err *e)
{
    enum status st = windows_run(w, units, n, e);

    for (int m = 0; m < n && st == OK && work_leads(w); m++)
        st = keep(w, units[m], &w->r.s.pipe.mb[m], e);
    return st;
}

/* ---- the file ---- */

/* Losses in the order of the labels, whatever unit holds them. */
struct reader {
    struct work *w;
    int64_t unit, n, at;
    double *losses;
};

static enum status next_loss(struct reader *r, double *loss, struct err *e)
{
    while (r->at == r->n) {
        int64_t bytes = parts_bytes(&r->w->parts, ++r->unit);
        enum status st;
        mem_give(r->losses);
        r->losses = mem_take((size_t)max_i64(8, bytes));
        r->n = bytes / (int64_t)sizeof *r->losses;
        r->at = 0;
        if ((st = parts_read(&r->w->parts, r->unit, 0, r->losses, bytes, e)) != OK)
            return st;
    }
    *loss = r->losses[r->at++];
    return OK;
}

struct sums {
    double nll;
    int64_t counted;
};

/* Tokens first .. end-1; the file's first token has no loss. */
static enum status put_document(struct reader *r, struct lines *l, int64_t document, int64_t first,
                                int64_t end, struct sums *all, struct err *e)
{
    struct sums s = { 0 };
    double loss;
    enum status st;

    json_text_add(&l->t,
                  "{\"document\": %" PRId64 ", \"first_token\": %" PRId64 ", \"tokens\": %" PRId64,
                  document, first, end - first);
    if (r->w->o->each_token)
        json_text_add(&l->t, ", \"token_nll\": [");
    for (int64_t i = first; i < end; i++) {
        loss = NAN;
        if (i > 0 && (st = next_loss(r, &loss, e)) != OK)
            return st;
        if (!isnan(loss)) {
            s.nll += loss;
            s.counted++;
        }
        if (!r->w->o->each_token)
            continue;
        json_text_add(&l->t, i > first ? ", " : "");
        lines_real(l, loss);
    }
    if (r->w->o->each_token)
        json_text_add(&l->t, "]");
    json_text_add(&l->t, ", \"counted\": %" PRId64 ", \"nll\": ", s.counted);
    lines_real(l, s.nll);
    json_text_add(&l->t, ", \"perplexity\": ");
    lines_real(l, s.counted ? exp(s.nll / (double)s.counted) : NAN);
    json_text_add(&l->t, "}");
    all->nll += s.nll;
    all->counted += s.counted;
    return lines_end_line(l, e);
}

static enum status finish_tokens(struct work *w, struct lines *l, struct err *e)
{
    const struct tokens *t = &w->tokens;
    struct reader r = { .w = w, .unit = -1 };
    struct sums all = { 0 };
    int64_t documents = max_i64(1, t->ndocuments), first = 0, end; /* one, if none are listed */
    char n[32], m[32];
    enum status st = OK;

    for (int64_t d = 0; d < documents && st == OK; d++, first = end) {
        end = t->ndocuments ? tokens_first(t, d + 1) : t->count;
        st = end >= first && end <= t->count
                 ? put_document(&r, l, d, first, end, &all, e)
                 : err_set(e, E_FILE,
                           "%s: document %" PRId64 " ends at token %" PRId64
                           ": the list of documents is damaged",
                           t->path, d, end);
    }
    mem_give(r.losses);
    if (st == OK && all.counted)
        say("nll %.6f per token, perplexity %.6g: %s tokens counted, %s documents",
            all.nll / (double)all.counted, exp(all.nll / (double)all.counted),
            log_thousands(n, all.counted), log_thousands(m, documents));
    else if (st == OK)
        say("no token counts: each is the first of a document");
    return st;
}

struct score { /* of a question's choices */
    double best, best_mean;
    int64_t pick, pick_mean, n;
};

static enum status put_question(struct work *w, struct reader *r, struct lines *l, int64_t *item,
                                struct score *s, struct err *e)
{
    const struct items *t = &w->items;
    struct json_text means = { 0 };
    int64_t question = t->group[*item];
    enum status st = OK;

    *s = (struct score){ .best = -INFINITY, .best_mean = -INFINITY };
    json_text_add(&l->t, "{\"question\": %" PRId64 ", \"log_likelihoods\": [", question);
    for (; *item < t->n && t->group[*item] == question && st == OK; (*item)++, s->n++) {
        int64_t n = windows_at(w, *item).nscored;
        double sum = 0, loss = 0;
        for (int64_t i = 0; i < n && st == OK; i++, sum -= loss)
            st = next_loss(r, &loss, e);
        json_text_add(&l->t, s->n ? ", " : "");
        json_text_real(&l->t, sum);
        json_text_add(&means, s->n ? ", " : "");
        json_text_real(&means, sum / (double)n);
        s->pick = sum > s->best ? s->n : s->pick;
        s->best = fmax(s->best, sum);
        s->pick_mean = sum / (double)n > s->best_mean ? s->n : s->pick_mean;
        s->best_mean = fmax(s->best_mean, sum / (double)n);
    }
    json_text_add(&l->t,
                  "], \"per_token\": [%s], \"pick\": %" PRId64 ", \"pick_per_token\": %" PRId64,
                  means.s ? means.s : "", s->pick, s->pick_mean);
    mem_give(means.s);
    return st;
}

static enum status finish_choices(struct work *w, struct lines *l, struct err *e)
{
    struct nll *own = w->own;
    struct reader r = { .w = w, .unit = -1 };
    struct score s;
    int64_t item = 0, right = 0, right_mean = 0, known = 0;
    enum status st = OK;

    for (int64_t q = 0; item < w->items.n && st == OK; q++) {
        if ((st = put_question(w, &r, l, &item, &s, e)) != OK)
            break;
        if (own->right[q] >= 0) {
            json_text_add(&l->t, ", \"answer\": %" PRId64, own->right[q]);
            known++;
            right += s.pick == own->right[q];
            right_mean += s.pick_mean == own->right[q];
        }
        json_text_add(&l->t, "}");
        st = lines_end_line(l, e);
    }
    mem_give(r.losses);
    if (st == OK && known)
        say("accuracy %.4f by sums, %.4f by means over tokens: %" PRId64 " questions",
            (double)right / (double)known, (double)right_mean / (double)known, known);
    else if (st == OK)
        say("%" PRId64 " questions, none with an answer", own->nright);
    return st;
}

static enum status finish(struct work *w, const char *path, struct err *e)
{
    struct lines l;
    enum status st = lines_open(&l, path, e);

    if (st == OK)
        st = of_choices(w->o) ? finish_choices(w, &l, e) : finish_tokens(w, &l, e);
    return lines_close(&l, st, e);
}

static void end(struct work *w)
{
    struct nll *own = w->own;

    mem_give(own->losses);
    mem_give(own->scored);
    mem_give(own->right);
}

enum status infer_nll(struct comm *world, const struct infer_options *o)
{
    static const struct work_kind kind = { .name = "nll",
                                           .read = read,
                                           .ask = ask,
                                           .begin = begin,
                                           .pass = pass,
                                           .finish = finish,
                                           .end = end };
    struct nll own = { 0 };

    return work_run(world, o, &kind, &own);
}
