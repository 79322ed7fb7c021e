#include "convert/tokenize.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/inputs.h"
#include "convert/jsonl.h"
#include "convert/progress.h"
#include "data/tokens.h"
#include "text/byte_tokenizer.h"
#include "text/utf8.h"

enum { PIECE = 1 << 16, TOKENIZER_MAX = 256 << 20 };
enum part { TRAIN, VALIDATION, PARTS };

struct job {
    const struct tokenize *a;
    struct tokens_writer *writer[PARTS]; /* NULL: no such part */
    int64_t documents[PARTS], done;      /* done: bytes of earlier inputs */
    struct progress progress;
    uint32_t *ids; /* [PIECE] */
    char *bytes;   /* [PIECE] */
};

/* ---- arguments ---- */

/* A tokenizer.json that is ours in all but the spaces. */
static enum status check_tokenizer(const char *path, struct err *e)
{
    char *text;
    size_t n;
    json_t *theirs, *ours;
    json_error_t why;
    int same;
    enum status st;

    if (strcmp(path, "bytes") == 0)
        return OK;
    if ((st = file_read_text(path, TOKENIZER_MAX, &text, &n, e)) != OK)
        return st;
    theirs = json_loadb(text, n, JSON_ALLOW_NUL, &why);
    ours = json_loads(byte_tokenizer_json(), 0, NULL);
    same = json_equal(theirs, ours);
    json_decref(ours);
    mem_give(text);
    if (!theirs)
        return err_set(e, E_FILE, "%s:%d: not a tokenizer.json: %s", path, why.line, why.text);
    json_decref(theirs);
    if (!same)
        return err_set(e, E_INPUT,
                       "--tokenizer %s: only `bytes` in this build; make the tokens elsewhere and "
                       "take them in "
                       "with `pretrain-data import`",
                       path);
    return OK;
}

static enum status check_outputs(const struct tokenize *a, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < a->ninputs && st == OK; i++) {
        st = output_check(a->out, a->input[i], e);
        if (st == OK && a->validation)
            st = output_check(a->validation, a->input[i], e);
    }
    if (st == OK && a->validation && output_check(a->out, a->validation, NULL) != OK)
        st =
            err_set(e, E_INPUT, "%s: both -o and --validation-output; give them two names", a->out);
    return st;
}

/* ---- documents ---- */

/* F to twelve decimal places, so that floor(dF) is exact: 0.29 of 100 documents are 29. */
static enum part part_of(const struct job *j, int64_t d)
{
    const int64_t one = 1000000000000;
    __int128 f = llround(j->a->fraction * (double)one);

    return j->a->validation && (d + 1) * f / one > d * f / one ? VALIDATION : TRAIN;
}

static struct tokens_writer *document_open(struct job *j)
{
    enum part p = part_of(j, j->documents[TRAIN] + j->documents[VALIDATION]);

    j->documents[p]++;
    tokens_writer_document(j->writer[p]);
    return j->writer[p];
}

static enum status add_bytes(struct job *j, struct tokens_writer *w, const char *text, size_t n,
                             struct err *e)
{
    enum status st = OK;

    for (size_t at = 0; at < n && st == OK; at += PIECE) {
        size_t k = n - at < PIECE ? n - at : PIECE;

        for (size_t i = 0; i < k; i++)
            j->ids[i] = (unsigned char)text[at + i];
        st = tokens_writer_add(w, j->ids, (int64_t)k, e);
    }
    return st;
}

static enum status document_end(struct tokens_writer *w, struct err *e)
{
    static const uint32_t end = BYTE_EOD;

    return tokens_writer_add(w, &end, 1, e);
}

/* ---- inputs ---- */

static enum status add_text(struct job *j, struct file *f, struct err *e)
{
    int64_t size = file_size(f);
    struct utf8_check u = { 0 };
    struct tokens_writer *w = document_open(j);
    enum status st = OK;

    for (int64_t at = 0; at < size && st == OK; at += PIECE) {
        size_t n = (size_t)min_i64(PIECE, size - at);

        progress_show(&j->progress, j->done + at);
        st = file_read_at(f, j->bytes, n, at, e);
        if (st == OK && utf8_check_add(&u, j->bytes, n))
            st = err_set(e, E_FILE, "%s: not UTF-8 at byte %lld (0x%02x); convert the file (iconv)",
                         f->path, (long long)u.at + 1, (unsigned char)j->bytes[u.at - at]);
        if (st == OK)
            st = add_bytes(j, w, j->bytes, n, e);
    }
    if (st == OK && utf8_check_end(&u))
        st = err_set(e, E_FILE, "%s: not UTF-8: the last character is cut", f->path);
    return st == OK ? document_end(w, e) : st;
}

static enum status add_lines(struct job *j, struct file *f, struct err *e)
{
    struct jsonl *lines = jsonl_open(f, j->a->field);
    const char *text;
    size_t n;
    enum status st;

    while ((st = jsonl_next(lines, &text, &n, e)) == OK && text) {
        struct tokens_writer *w = document_open(j);

        progress_show(&j->progress, j->done + jsonl_done(lines));
        if ((st = add_bytes(j, w, text, n, e)) != OK || (st = document_end(w, e)) != OK)
            break;
    }
    jsonl_close(lines);
    return st;
}

static enum status add_inputs(struct job *j, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < j->a->ninputs && st == OK; i++) {
        const char *path = j->a->input[i];
        struct file f;

        if ((st = file_open(&f, path, FILE_READ, e)) != OK)
            return st;
        st = input_is_jsonl(path) ? add_lines(j, &f, e) : add_text(j, &f, e);
        j->done += file_size(&f);
        file_close(&f, NULL);
    }
    return st;
}

/* ---- the whole ---- */

static enum status open_writers(struct job *j, struct err *e)
{
    const char *const names[PARTS] = { j->a->out, j->a->validation };
    const char *json = byte_tokenizer_json();
    enum status st = OK;

    for (int p = 0; p < PARTS && st == OK; p++)
        if (names[p])
            st = tokens_writer_open(&j->writer[p], names[p], BYTE_VOCAB, BYTE_EOD, json,
                                    strlen(json), e);
    return st;
}

static enum status check_parts(const struct job *j, struct err *e)
{
    long long n = j->documents[TRAIN] + j->documents[VALIDATION];

    if (n == 0)
        return err_set(e, E_FILE, "%s: no documents in it", j->a->input[0]);
    for (int p = 0; p < PARTS && j->a->validation; p++)
        if (j->documents[p] == 0)
            return err_set(
                e, E_INPUT,
                "--validation-fraction %g: of %lld document%s none is left for %s; choose another "
                "fraction, or give more documents (a text file is one, a jsonl line is one)",
                j->a->fraction, n, n == 1 ? "" : "s", p == TRAIN ? "training" : "validation");
    return OK;
}

/* Both files are complete before the first gets its name. */
static enum status commit(struct job *j, struct err *e)
{
    enum status st = OK;

    for (int p = 0; p < PARTS && st == OK; p++)
        if (j->writer[p])
            st = tokens_writer_finish(j->writer[p], e);
    for (int p = 0; p < PARTS && st == OK; p++)
        if (j->writer[p]) {
            st = tokens_writer_close(j->writer[p], e);
            j->writer[p] = NULL;
        }
    return st;
}

static enum status tokenize_checked(struct job *j, struct err *e)
{
    enum status st = open_writers(j, e);

    if (st == OK)
        st = add_inputs(j, e);
    progress_end(&j->progress);
    if (st == OK)
        st = check_parts(j, e);
    if (st == OK)
        st = commit(j, e);
    for (int p = 0; p < PARTS; p++)
        tokens_writer_cancel(j->writer[p]);
    if (st == OK)
        st = output_say(j->a->out, e);
    if (st == OK && j->a->validation)
        st = output_say(j->a->validation, e);
    return st;
}

enum status tokenize(const struct tokenize *a, struct err *e)
{
    struct job j = { .a = a };
    int64_t all = 0;
    enum status st = check_tokenizer(a->tokenizer, e);

    if (st == OK)
        st = check_outputs(a, e);
    for (int i = 0; i < a->ninputs && st == OK; i++)
        st = input_check(a->input[i], &all, e);
    if (st != OK)
        return st;
    j.ids = mem_take(PIECE * sizeof *j.ids);
    j.bytes = mem_take(PIECE);
    j.progress = progress_start("bytes", all);
    st = tokenize_checked(&j, e);
    mem_give(j.ids);
    mem_give(j.bytes);
    return st;
}
