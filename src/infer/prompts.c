#include "infer/prompts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "text/utf8.h"

static enum status end_prompt(struct work *w, const char *where, struct err *e)
{
    struct items *t = &w->items;
    struct items_limits limits = { w->model.vocab_size, w->model.positions };
    int32_t end = (int32_t)w->model.eos;

    if (t->first[t->n] == t->first[t->n - 1] && end >= 0)
        items_put(t, &end, 1); /* what stands before a text: the end of another */
    return items_check(t, &limits, where, e);
}

static enum status read_object(void *context, const json_t *object, const char *where,
                               struct err *e)
{
    struct work *w = context;
    const json_t *prompt = json_object_get(object, "prompt"), *ids = json_object_get(object, "ids");
    enum status st;

    if (!prompt == !ids)
        return err_set(e, E_FILE,
                       "%s: a line has either \"prompt\", a text, or \"ids\", a list of ids",
                       where);
    items_begin(&w->items, w->items.n);
    st = prompt ? items_put_text(&w->items, w->codec, prompt, 1, where, e)
                : items_put_list(&w->items, ids, where, e);
    return st == OK ? end_prompt(w, where, e) : st;
}

static enum status read_text_line(struct work *w, const char *text, size_t n, const char *where,
                                  struct err *e)
{
    struct utf8_check u = { 0 };
    const int32_t *ids;
    int64_t nids;
    enum status st;

    if (utf8_check_add(&u, text, n) || utf8_check_end(&u))
        return err_set(e, E_FILE, "%s: not UTF-8 at byte %" PRId64 " of the line", where, u.at + 1);
    items_begin(&w->items, w->items.n);
    if ((st = codec_encode(w->codec, text, n, 1, &ids, &nids, e)) != OK) {
        err_prefix(e, "%s", where);
        return st;
    }
    items_put(&w->items, ids, nids);
    return end_prompt(w, where, e);
}

/* A prompt a line; empty lines are passed over. */
static enum status read_text(struct work *w, const char *path, struct err *e)
{
    char where[4096 + 32], *text;
    size_t n, at = 0;
    int64_t line = 0;
    enum status st = file_read_text(path, (size_t)1 << 32, &text, &n, e);

    if (st != OK)
        return st;
    while (at < n && st == OK) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end ? (size_t)(end - text) - at : n - at, bytes = length;
        if (bytes > 0 && text[at + bytes - 1] == '\r')
            bytes--;
        snprintf(where, sizeof where, "%s:%" PRId64, path, ++line);
        if (bytes > 0)
            st = read_text_line(w, text + at, bytes, where, e);
        at += length + 1;
    }
    mem_give(text);
    return st;
}

enum status prompts_read(struct work *w, struct err *e)
{
    const struct infer_options *o = w->o;
    struct err why = { "" };
    enum status st = OK;

    w->codec = codec_open(w->model.tokenizer_json, w->model.tokenizer_bytes, o->model);
    for (int i = 0; i < o->ninputs && st == OK; i++) {
        st = work_note_input(w, o->input[i], e);
        if (st == OK)
            st = work_is_jsonl(o->input[i]) ? items_read(o->input[i], read_object, w, e)
                                            : read_text(w, o->input[i], e);
    }
    if (st == OK && w->items.n == 0)
        st = err_set(e, E_FILE, "%s: no prompt", o->input[0]);
    if (st == OK && w->model.tokenizer_json && codec_check(w->codec, &why) != OK)
        warn("texts are left out: %s", why.text);
    return st;
}

void prompts_put_text(struct json_text *to, const char *s, size_t n)
{
    char *clean = mem_take(3 * n + 1);
    size_t out = 0;

    for (size_t at = 0, length; at < n; at += length) {
        int good = 0;
        for (length = 1; length <= 4 && at + length <= n && !good; length += !good) {
            struct utf8_check u = { 0 };
            good = !utf8_check_add(&u, s + at, length) && !utf8_check_end(&u);
        }
        length = good ? length : 1;
        memcpy(clean + out, good ? s + at : "\xef\xbf\xbd", good ? length : 3);
        out += good ? length : 3;
    }
    json_text_string(to, clean, out);
    mem_give(clean);
}
