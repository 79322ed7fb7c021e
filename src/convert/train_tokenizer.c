#include "convert/train_tokenizer.h"

#include <omp.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/batches.h"
#include "convert/jsonl.h"
#include "convert/progress.h"
#include "hf/json_text.h"
#include "text/bpe_train.h"
#include "text/buffer.h"
#include "text/normalise.h"
#include "text/pattern.h"
#include "text/scan.h"
#include "text/unicode.h"
#include "text/utf8.h"

enum { ENDS = 4096, PAD = 64 };

struct job {
    const struct train_tokenizer *a;
    enum scan_kind kind;
    struct pattern pattern;
    struct normaliser form;
    uint8_t *classes; /* [UNICODE_POINTS] */
    struct input_list list;
    struct batches *batches;
    struct progress progress;
    struct word_count *words; /* [threads] */
    int threads;
    int64_t bytes;      /* of text */
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
    struct batch batch;
    struct buffer fields; /* texts of JSON lines */
    uint32_t ends[ENDS];  /* pieces that wait to be counted */
    int waiting;
    uint32_t start;            /* of the first of them */
    struct buffer form, spare; /* normalised */
};

static void count_waiting(struct share *c, const char *text)
{
    word_count_add(c->words, text, c->start, c->ends, c->waiting);
    c->start = c->waiting ? c->ends[c->waiting - 1] : c->start;
    c->waiting = 0;
}

/* A sequence: the bytes at .. end; behind the last one there are PAD zeros. */
static void count_sequence(struct share *c, const char *text, size_t at, size_t end)
{
    while (at < end) {
        size_t n = scan_pieces(&c->scan, text + at, end - at);

        for (size_t w = 0; w <= n / 64; w++)
            for (uint64_t x = c->scan.start[w]; x; x &= x - 1) {
                size_t to = w * 64 + (size_t)__builtin_ctzll(x);

                if (to == 0)
                    continue;
                c->ends[c->waiting++] = (uint32_t)(at + to);
                if (c->waiting == ENDS)
                    count_waiting(c, text);
            }
        at += n;
    }
}

/* text[at .. end) in the pattern's normal form. */
static void count_form(struct share *c, const struct normaliser *form, const char *text, size_t at,
                       size_t end)
{
    if (normalise_is_idle(form, text + at, end - at, 1)) {
        count_sequence(c, text, at, end);
        return;
    }
    count_waiting(c, text);
    normalise_run(form, NULL, text + at, end - at, 1, &c->form, &c->spare, NULL);
    buffer_grow(&c->form, PAD);
    memset(c->form.at + c->form.n, 0, PAD);
    c->start = 0;
    count_sequence(c, c->form.at, 0, c->form.n);
    count_waiting(c, c->form.at);
    c->start = (uint32_t)end;
}

static enum status check_text(const struct share *c, const char *path, struct err *e)
{
    const struct batch_head *h = &c->batch.h;
    struct utf8_check u = { 0 };

    if (!utf8_check_add(&u, c->batch.text, (size_t)h->n) && !utf8_check_end(&u))
        return OK;
    if (u.at == h->n)
        return err_set(e, E_FILE, "%s: not UTF-8: the last character is cut", path);
    return err_set(e, E_FILE, "%s: not UTF-8 at byte %lld (0x%02x); convert the file (iconv)", path,
                   (long long)(h->at + u.at) + 1, (unsigned char)c->batch.text[u.at]);
}

/* A text counts line by line, newlines included. */
static enum status count_lines(struct share *c, const struct job *j, const char *path,
                               struct err *e)
{
    size_t n = (size_t)c->batch.h.n, at = 0;
    enum status st = check_text(c, path, e);
    char *text;

    batch_room(&c->batch, n + PAD);
    text = c->batch.text;
    memset(text + n, 0, PAD);
    c->start = 0;
    while (at < n && st == OK) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t end = newline ? (size_t)(newline + 1 - text) : n;

        count_form(c, &j->form, text, at, end);
        at = end;
    }
    count_waiting(c, text);
    return st;
}

/* A document counts as a whole. */
static enum status count_field(struct share *c, const struct job *j, const struct jsonl_line *at,
                               const char *line, size_t n, struct err *e)
{
    static const char zeros[PAD];
    json_t *value = NULL;
    const char *text;
    size_t bytes;
    enum status st = jsonl_parse(&value, at, line, n, e);

    if (st == OK)
        st = jsonl_field(value, at, &text, &bytes, e);
    if (st == OK) {
        c->fields.n = 0;
        buffer_add(&c->fields, text, bytes);
        buffer_add(&c->fields, zeros, PAD);
        c->start = 0;
        count_form(c, &j->form, c->fields.at, 0, bytes);
        count_waiting(c, c->fields.at);
    }
    json_decref(value);
    return st;
}

static enum status count_fields(struct share *c, const struct job *j, const char *path,
                                struct err *e)
{
    struct jsonl_line at = { path, j->a->field, c->batch.h.lines };
    const char *text = c->batch.text, *next;
    size_t n = (size_t)c->batch.h.n;
    const char *end = text + n;
    enum status st = OK;

    if (c->batch.h.at == 0)
        jsonl_pass_mark(&text, &n);
    for (; text < end && st == OK; text = next) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t k = (size_t)((newline ? newline : end) - text);

        next = newline ? newline + 1 : end;
        at.number++;
        if (!jsonl_is_blank(text, k))
            st = count_field(c, j, &at, text, k, e);
    }
    return st;
}

static enum status count_batch(struct share *c, const struct job *j, struct err *e)
{
    const char *path = input_name(&j->list.at[c->batch.input]);

    return c->batch.h.format == INPUT_JSONL ? count_fields(c, j, path, e)
                                            : count_lines(c, j, path, e);
}

/* Batches are taken in order, so all before a bad one are looked at: the first fault is told. */
static void note(struct job *j, int64_t number, enum status st, const struct err *e)
{
    if (st == OK || (j->st != OK && number > j->bad_number))
        return;
    j->st = st;
    j->bad_number = number;
    *j->e = *e;
}

static int next_batch(struct job *j, struct batch *b, struct err *e)
{
    int more = 0;

#pragma omp critical(inputs)
    if (j->st == OK) {
        enum status st = batches_next(j->batches, b, &more, e);

        note(j, INT64_MAX, st, e);
        if (more) {
            progress_show(&j->progress, b->done);
            j->bytes += b->h.n;
        }
    }
    return more;
}

static void count_share(struct job *j, int thread)
{
    struct err *e = mem_take(sizeof *e);
    struct share *c = mem_take(sizeof *c);
    enum status st = OK;

    c->words = &j->words[thread];
    scan_open(&c->scan, j->kind, j->classes);
    while (st == OK && next_batch(j, &c->batch, e))
        st = count_batch(c, j, e);
#pragma omp critical(inputs)
    note(j, c->batch.h.number, st, e);
    scan_free(&c->scan);
    buffer_free(&c->fields);
    batch_free(&c->batch);
    buffer_free(&c->form);
    buffer_free(&c->spare);
    mem_give(c);
    mem_give(e);
}

static enum status count_all(struct job *j, struct err *e)
{
    const struct batches_of of = { .list = &j->list };
    const struct place begin = { 0 };

    j->e = e;
    j->words = mem_take((size_t)j->threads * sizeof *j->words);
    j->batches = batches_open(&of, &begin);
#pragma omp parallel num_threads(j->threads)
    count_share(j, omp_get_thread_num());
    batches_close(j->batches);
    progress_end(&j->progress);
    for (int i = 1; i < j->threads; i++)
        word_count_merge(&j->words[0], &j->words[i]);
    if (j->st == OK && j->words[0].used == 0)
        return err_set(e, E_FILE, "%s: no text in it", j->list.at[0].path);
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
    struct json_text t = { 0 };
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

static enum status train_checked(struct job *j, const struct bpe_train *asked, struct err *e)
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
        say_result(j, &b, nwords, j->bytes, clock_now() - started);
    word_count_close(&j->words[0]);
    mem_give(j->words);
    bpe_close(&b);
    return st;
}

static enum status open_inputs(struct job *j, struct err *e)
{
    enum status st = input_list_make(&j->list, j->a->input, j->a->ninputs, j->a->format, e);

    for (int64_t i = 0; i < j->list.n && st == OK; i++) {
        struct input *in = &j->list.at[i];

        if (in->format == INPUT_TEXT)
            in->format = INPUT_LINES;
        st = output_check(j->a->out, in->path, e);
    }
    if (st == OK)
        input_list_say(&j->list);
    return st;
}

enum status train_tokenizer(const struct train_tokenizer *a, struct err *e)
{
    struct bpe_train t = { .vocab_size = a->vocab_size,
                           .min_frequency = a->min_frequency,
                           .special = a->special,
                           .nspecial = a->nspecial };
    struct job j = { .a = a, .kind = scan_kind_of(a->pattern) };
    enum status st = check_special(a, e);

    BUG_IF(j.kind == SCAN_NONE);
    j.threads = a->threads ? (int)a->threads : omp_get_max_threads();
    if (st == OK)
        st = check_size(&t, e);
    if (st == OK)
        st = open_inputs(&j, e);
    if (st == OK)
        st = pattern_of_name(&j.pattern, a->pattern, "--pattern", e);
    if (st != OK) {
        input_list_free(&j.list);
        return st;
    }
    j.classes = mem_take(UNICODE_POINTS);
    unicode_classes(j.classes);
    j.progress = progress_start("bytes", j.list.bytes);
    if ((st = read_form(&j, e)) == OK)
        st = train_checked(&j, &t, e);
    normalise_free(&j.form);
    input_list_free(&j.list);
    mem_give(j.classes);
    pattern_free(&j.pattern);
    return st;
}
