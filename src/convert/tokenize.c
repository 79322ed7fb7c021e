#include "convert/tokenize.h"

#include <math.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/document_ids.h"
#include "convert/inputs.h"
#include "convert/jsonl.h"
#include "convert/progress.h"
#include "text/utf8.h"

enum { CHECKED = 1 << 20 };
enum part { TRAIN, VALIDATION, PARTS };

struct job {
    const struct tokenize *a;
    struct tokens_writer *writer[PARTS]; /* NULL: no such part */
    int64_t documents[PARTS], done;      /* done: bytes of earlier inputs */
    struct progress progress;
    struct document_ids *ids;
};

/* ---- arguments ---- */

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

static enum status add_document(struct job *j, const char *text, size_t n, struct err *e)
{
    enum part p = part_of(j, j->documents[TRAIN] + j->documents[VALIDATION]);

    j->documents[p]++;
    return document_ids_add(j->ids, j->writer[p], text, n, e);
}

/* ---- inputs ---- */

static enum status check_text(struct job *j, const char *path, const char *text, size_t n,
                              struct err *e)
{
    struct utf8_check u = { 0 };

    for (size_t at = 0; at < n; at += CHECKED) {
        progress_show(&j->progress, j->done + (int64_t)at);
        if (utf8_check_add(&u, text + at, n - at < CHECKED ? n - at : CHECKED))
            return err_set(e, E_FILE,
                           "%s: not UTF-8 at byte %lld (0x%02x); convert the file (iconv)", path,
                           (long long)u.at + 1, (unsigned char)text[u.at]);
    }
    return utf8_check_end(&u) ? err_set(e, E_FILE, "%s: not UTF-8: the last character is cut", path)
                              : OK;
}

static enum status add_text(struct job *j, struct file *f, struct err *e)
{
    const void *text;
    size_t n;
    enum status st = file_map(f, &text, &n, e);

    if (st != OK)
        return st;
    if ((st = check_text(j, f->path, text, n, e)) == OK && (st = add_document(j, text, n, e)) != OK)
        err_prefix(e, "%s", f->path);
    file_unmap(text, n);
    return st;
}

static enum status add_lines(struct job *j, struct file *f, struct err *e)
{
    struct jsonl *lines = jsonl_open(f, j->a->field);
    const char *text;
    size_t n;
    enum status st;

    while ((st = jsonl_next(lines, &text, &n, e)) == OK && text) {
        progress_show(&j->progress, j->done + jsonl_done(lines));
        if ((st = add_document(j, text, n, e)) != OK) {
            err_prefix(e, "%s, document %lld", f->path,
                       (long long)(j->documents[TRAIN] + j->documents[VALIDATION] - 1));
            break;
        }
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
    enum status st = OK;

    for (int p = 0; p < PARTS && st == OK; p++)
        if (names[p])
            st = document_ids_writer(j->ids, &j->writer[p], names[p], e);
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
    char number[32];

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
    if (st == OK && document_ids_specials(j->ids))
        say("special tokens named in the texts: %s; --specials-as-text takes them as text",
            log_thousands(number, document_ids_specials(j->ids)));
    return st;
}

enum status tokenize(const struct tokenize *a, struct err *e)
{
    struct job j = { .a = a };
    int64_t all = 0;
    enum status st = document_ids_open(&j.ids, a->tokenizer, a->eod, a->specials_as_text, e);

    if (st == OK)
        st = check_outputs(a, e);
    for (int i = 0; i < a->ninputs && st == OK; i++)
        st = input_check(a->input[i], &all, e);
    if (st == OK) {
        j.progress = progress_start("bytes", all);
        st = tokenize_checked(&j, e);
    }
    document_ids_close(j.ids);
    return st;
}
