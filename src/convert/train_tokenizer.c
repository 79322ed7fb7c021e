#include "convert/train_tokenizer.h"

#include <omp.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/inputs.h"
#include "convert/progress.h"
#include "hf/json_text.h"
#include "text/bpe_train.h"
#include "text/normalise.h"
#include "text/pattern.h"
#include "text/scan.h"
#include "text/unicode.h"
#include "text/utf8.h"

enum { ENDS = 4096 };

struct job {
    const struct train_tokenizer *a;
    enum scan_kind kind;
    struct pattern pattern;
    struct normaliser form;
    uint8_t *classes; /* [UNICODE_POINTS] */
    struct inputs *inputs;
    struct progress progress;
    struct word_count *words; /* [threads] */
    int threads;
    int64_t bad_number; /* the first batch with a fault */
    enum status st;
    struct err *e;
};

/* What Qwen2's tokenizers make of a text first. */
static const char normal_form[] = "{\"type\":\"NFC\"}";

static enum status read_form(struct job *j, struct err *e)
{
    json_t *o = json_loads(j->kind == SCAN_QWEN2 ? normal_form : "null", JSON_DECODE_ANY, NULL);
    struct part part = part_top(o);
    enum status st;

    if (json_is_null(o))
        part.o = NULL;
    st = normalise_read(&j->form, &part, j->classes, e);
    json_decref(o);
    return st;
}

/* ---- arguments ---- */

static enum status check_special(const struct train_tokenizer *a, struct err *e)
{
    for (int i = 0; i < a->nspecial; i++) {
        struct utf8_check u = { 0 };
        const char *s = a->special[i];

        if (!*s)
            return err_set(e, E_INPUT, "--special \"\": an empty token; leave it out");
        if (utf8_check_add(&u, s, strlen(s)) || utf8_check_end(&u))
            return err_set(e, E_INPUT, "--special \"%s\": not UTF-8", s);
    }
    return OK;
}

static enum status check_size(const struct bpe_train *t, struct err *e)
{
    int32_t least = bpe_train_least(t);

    return t->vocab_size >= least
               ? OK
               : err_set(e, E_INPUT,
                         "--vocab-size %lld: must be at least %d: the special tokens and %d bytes "
                         "come first",
                         (long long)t->vocab_size, least, BPE_BYTES);
}

/* ---- counting ---- */

struct share { /* a thread's */
    struct scan scan;
    struct word_count *words;
    uint32_t ends[ENDS]; /* pieces of a batch that wait to be counted */
    int waiting;
    uint32_t start;            /* of the first of them */
    struct buffer form, spare; /* normalised */
};

static void count_waiting(struct share *c, const struct inputs_batch *b)
{
    word_count_add(c->words, b->text, c->start, c->ends, c->waiting);
    c->start = c->waiting ? c->ends[c->waiting - 1] : c->start;
    c->waiting = 0;
}

/* A sequence: the bytes at .. end. */
static void count_sequence(struct share *c, const struct inputs_batch *b, size_t at, size_t end)
{
    while (at < end) {
        size_t n = scan_pieces(&c->scan, b->text + at, end - at);

        for (size_t w = 0; w <= n / 64; w++)
            for (uint64_t x = c->scan.start[w]; x; x &= x - 1) {
                size_t to = w * 64 + (size_t)__builtin_ctzll(x);

                if (to == 0)
                    continue;
                c->ends[c->waiting++] = (uint32_t)(at + to);
                if (c->waiting == ENDS)
                    count_waiting(c, b);
            }
        at += n;
    }
}

/* Where sequence i, which begins at `at`, ends. */
static size_t sequence_end(const struct inputs_batch *b, size_t i, size_t at)
{
    const char *newline = b->nends ? NULL : memchr(b->text + at, '\n', b->n - at);

    return b->nends ? (size_t)b->end[i] : newline ? (size_t)(newline + 1 - b->text) : b->n;
}

static void count_batch(struct share *c, const struct inputs_batch *b)
{
    size_t at = 0;

    c->start = 0;
    for (size_t i = 0; at < b->n; i++) {
        size_t end = sequence_end(b, i, at);

        count_sequence(c, b, at, end);
        at = end;
    }
    count_waiting(c, b);
}

/* The same sequence by sequence in the pattern's normal form. */
static void count_normalised(struct share *c, const struct normaliser *form,
                             const struct inputs_batch *b)
{
    size_t at = 0;

    if (normalise_is_idle(form, b->text, b->n, 1)) {
        count_batch(c, b);
        return;
    }
    for (size_t i = 0; at < b->n; i++) {
        size_t end = sequence_end(b, i, at);
        struct inputs_batch one;

        normalise_run(form, NULL, b->text + at, end - at, 1, &c->form, &c->spare, NULL);
        buffer_grow(&c->form, INPUTS_PAD);
        memset(c->form.at + c->form.n, 0, INPUTS_PAD);
        one = (struct inputs_batch){ .text = c->form.at, .n = c->form.n };
        c->start = 0;
        count_sequence(c, &one, 0, one.n);
        count_waiting(c, &one);
        at = end;
    }
}

static enum status check_text(const struct inputs_batch *b, struct err *e)
{
    struct utf8_check u = { 0 };

    if (b->nends || (!utf8_check_add(&u, b->text, b->n) && !utf8_check_end(&u)))
        return OK;
    if (u.at == (int64_t)b->n)
        return err_set(e, E_FILE, "%s: not UTF-8: the last character is cut", b->path);
    return err_set(e, E_FILE, "%s: not UTF-8 at byte %lld (0x%02x); convert the file (iconv)",
                   b->path, (long long)(b->at + u.at) + 1, (unsigned char)b->text[u.at]);
}

/* Batches are taken in order, so all before a bad one are looked at: the first fault is told. */
static void note(struct job *j, const struct inputs_batch *b, enum status st, const struct err *e)
{
    if (st == OK || (j->st != OK && b->number > j->bad_number))
        return;
    j->st = st;
    j->bad_number = b->number;
    *j->e = *e;
}

static int next_batch(struct job *j, struct inputs_batch *b, struct err *e)
{
    int go_on = 0;

#pragma omp critical(inputs)
    if (j->st == OK) {
        enum status st = inputs_next(j->inputs, b, e);

        progress_show(&j->progress, inputs_done(j->inputs));
        note(j, b, st, e);
        go_on = st == OK && b->n > 0;
    }
    return go_on;
}

static void count_share(struct job *j, int thread)
{
    struct inputs_batch b = { NULL };
    struct err *e = mem_take(sizeof *e);
    struct share *c = mem_take(sizeof *c);
    enum status st = OK;

    c->words = &j->words[thread];
    scan_open(&c->scan, j->kind, j->classes);
    while (st == OK && next_batch(j, &b, e))
        if ((st = check_text(&b, e)) == OK)
            count_normalised(c, &j->form, &b);
#pragma omp critical(inputs)
    note(j, &b, st, e);
    scan_free(&c->scan);
    buffer_free(&c->form);
    buffer_free(&c->spare);
    mem_give(c);
    inputs_batch_close(&b);
    mem_give(e);
}

static enum status count_all(struct job *j, struct err *e)
{
    j->e = e;
    j->words = mem_take((size_t)j->threads * sizeof *j->words);
    j->inputs = inputs_open(j->a->input, j->a->ninputs, j->a->field);
#pragma omp parallel num_threads(j->threads)
    count_share(j, omp_get_thread_num());
    inputs_close(j->inputs);
    progress_end(&j->progress);
    for (int i = 1; i < j->threads; i++)
        word_count_merge(&j->words[0], &j->words[i]);
    if (j->st == OK && j->words[0].used == 0)
        return err_set(e, E_FILE, "%s: no text in it", j->a->input[0]);
    return j->st;
}

/* ---- tokenizer.json ---- */

static void write_added(struct json_text *t, const struct bpe *b, char *text)
{
    for (int32_t i = 0; i < b->nspecial; i++) {
        json_text_add(t, "%s{\"id\":%d,\"content\":", i ? "," : "", i);
        json_text_string(t, text, bpe_token_text(b, i, text));
        json_text_add(t, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                         "\"normalized\":false,\"special\":true}");
    }
}

static void write_pre_tokenizer(struct json_text *t, const struct job *j)
{
    if (j->kind == SCAN_GPT2)
        json_text_add(t, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                         "\"trim_offsets\":true,\"use_regex\":true}");
    else {
        json_text_add(t, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                         "\"pattern\":{\"Regex\":");
        json_text_string(t, j->pattern.text, j->pattern.n);
        json_text_add(t, "},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
                         "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]}");
    }
}

static void write_model(struct json_text *t, const struct bpe *b, char *text)
{
    json_text_add(t, "{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                     "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
                     "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n"
                     "\"vocab\":{");
    for (int32_t i = 0; i < b->ntokens; i++) {
        json_text_add(t, "%s\n", i ? "," : "");
        json_text_string(t, text, bpe_token_text(b, i, text));
        json_text_add(t, ":%d", i);
    }
    json_text_add(t, "},\n\"merges\":[");
    for (int32_t i = 0; i < b->nmerges; i++) {
        uint64_t pair = b->merge[i];
        size_t n = bpe_token_text(b, (int32_t)(pair >> 32), text);

        text[n++] = ' ';
        n += bpe_token_text(b, (int32_t)(uint32_t)pair, text + n);
        json_text_add(t, "%s\n", i ? "," : "");
        json_text_string(t, text, n);
    }
    json_text_add(t, "]}");
}

static enum status write_json(const struct job *j, const struct bpe *b, struct err *e)
{
    struct json_text t = { NULL };
    int64_t longest = 0;
    char *text;
    enum status st;

    for (int32_t i = 0; i < b->ntokens; i++)
        longest = max_i64(longest, b->start[i + 1] - b->start[i]);
    text = mem_take((size_t)(4 * longest + 1));
    json_text_add(&t, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
                      "\"added_tokens\":[");
    write_added(&t, b, text);
    json_text_add(&t, "],\n\"normalizer\":%s,\n\"pre_tokenizer\":",
                  j->kind == SCAN_QWEN2 ? normal_form : "null");
    write_pre_tokenizer(&t, j);
    json_text_add(&t, ",\n\"post_processor\":null,\n\"decoder\":{\"type\":\"ByteLevel\","
                      "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\n"
                      "\"model\":");
    write_model(&t, b, text);
    json_text_add(&t, "}\n");
    st = file_write_whole(j->a->out, t.s, t.n, e);
    mem_give(t.s);
    mem_give(text);
    return st;
}

/* ---- the whole ---- */

static void show_step(void *self, int64_t ntokens)
{
    progress_show(self, ntokens);
}

static void say_result(const struct job *j, const struct bpe *b, size_t nwords, int64_t bytes,
                       double seconds)
{
    char tokens[32], merges[32], words[32], from[32];

    if (b->ntokens < j->a->vocab_size)
        warn("--vocab-size %lld is not reached: no pair of tokens is left that occurs %lld times; "
             "%d tokens",
             (long long)j->a->vocab_size, (long long)max_i64(1, j->a->min_frequency), b->ntokens);
    say("%s: %s tokens (%d special, %s merges) of %s different pieces in %s bytes; %.2f s",
        j->a->out, log_thousands(tokens, b->ntokens), b->nspecial,
        log_thousands(merges, b->nmerges), log_thousands(words, (int64_t)nwords),
        log_thousands(from, bytes), seconds);
}

static enum status train_checked(struct job *j, const struct bpe_train *asked, int64_t bytes,
                                 struct err *e)
{
    struct bpe_train t = *asked;
    struct bpe b = { 0 };
    struct progress p;
    double started = clock_now();
    enum status st = count_all(j, e);
    size_t nwords = j->words[0].used;

    if (st == OK) {
        p = progress_start("tokens", t.vocab_size);
        t.step = show_step;
        t.self = &p;
        bpe_train(&t, &j->words[0], &b);
        progress_end(&p);
        st = write_json(j, &b, e);
    }
    if (st == OK)
        say_result(j, &b, nwords, bytes, clock_now() - started);
    word_count_close(&j->words[0]);
    mem_give(j->words);
    bpe_close(&b);
    return st;
}

enum status train_tokenizer(const struct train_tokenizer *a, struct err *e)
{
    struct bpe_train t = { .vocab_size = a->vocab_size,
                           .min_frequency = a->min_frequency,
                           .special = a->special,
                           .nspecial = a->nspecial };
    struct job j = { .a = a, .kind = scan_kind_of(a->pattern) };
    int64_t all = 0;
    enum status st = check_special(a, e);

    BUG_IF(j.kind == SCAN_NONE);
    j.threads = a->threads ? (int)a->threads : omp_get_max_threads();
    if (st == OK)
        st = check_size(&t, e);
    for (int i = 0; i < a->ninputs && st == OK; i++)
        if ((st = output_check(a->out, a->input[i], e)) == OK)
            st = input_check(a->input[i], &all, e);
    if (st == OK)
        st = pattern_of_name(&j.pattern, a->pattern, "--pattern", e);
    if (st != OK)
        return st;
    j.classes = mem_take(UNICODE_POINTS);
    unicode_classes(j.classes);
    j.progress = progress_start("bytes", all);
    if ((st = read_form(&j, e)) == OK)
        st = train_checked(&j, &t, all, e);
    normalise_free(&j.form);
    mem_give(j.classes);
    pattern_free(&j.pattern);
    return st;
}
