/* libFuzzer: what a worker of `pretrain-data tokenize` makes of a batch. Byte 0 says which format
 * it has, and whether U+FFFD is put. A JSON line that is read without a tree reads the same with
 * one; a refusal has a message; with U+FFFD a text is refused by nothing, and the same in two
 * parts. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "convert/encode_batch.h"
#include "convert/json_field.h"
#include "convert/jsonl.h"
#include "text/utf8.h"

static struct document_ids ids;
static struct encode *worker[2]; /* [replace] */
static struct encoded whole, part;

static void begin(void)
{
    static char *json;
    static size_t n;

    BUG_IF(document_ids_read("bytes", &json, &n, NULL) != OK ||
           document_ids_open(&ids, "bytes", json, n, NULL, NULL) != OK);
    for (int i = 0; i < 2; i++) {
        struct encode_how how = { .x = &ids, .field = "text", .replace = i, .hash = 1 };

        worker[i] = encode_open(&how);
    }
}

static void two_readers(const char *line, size_t n)
{
    static struct buffer room;
    struct jsonl_line at = { "", "text", 1 };
    struct utf8_check u = { 0 };
    const char *text, *want;
    size_t bytes, want_bytes;
    json_t *value = NULL;

    if (utf8_check_add(&u, line, n) || utf8_check_end(&u) ||
        !json_field(line, n, "text", &room, &text, &bytes))
        return;
    BUG_IF(jsonl_parse(&value, &at, line, n, NULL) != OK ||
           jsonl_field(value, &at, &want, &want_bytes, NULL) != OK);
    BUG_IF(want_bytes != bytes || memcmp(want, text, bytes) != 0);
    json_decref(value);
}

static void two_parts(const char *text, size_t n)
{
    size_t k = utf8_whole(text, n / 2 + 1) ? utf8_whole(text, n / 2 + 1) : n;
    struct batch_head h = { .format = INPUT_TEXT, .first = 1, .n = (int64_t)k, .last = k == n };
    size_t done;

    encode_run(worker[1], &h, text, &part);
    BUG_IF(part.h.status != OK || part.h.ntokens > whole.h.ntokens);
    done = (size_t)part.h.ntokens * 2;
    BUG_IF(done && memcmp(part.tokens, whole.tokens, done) != 0);
    if (k == n)
        return;
    h = (struct batch_head){
        .format = INPUT_TEXT, .at = (int64_t)k, .n = (int64_t)(n - k), .last = 1
    };
    encode_run(worker[1], &h, text + k, &part);
    BUG_IF(part.h.status != OK || done / 2 + (size_t)part.h.ntokens != (size_t)whole.h.ntokens);
    BUG_IF(memcmp(part.tokens, (char *)whole.tokens + done, (size_t)part.h.ntokens * 2) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch_head h = { .first = 1, .last = 1 };
    int replace;
    char *text;

    if (!worker[0])
        begin();
    if (size < 2)
        return 0;
    h.format = INPUT_TEXT + data[0] % 3;
    replace = data[0] >> 2 & 1;
    h.n = (int64_t)--size;
    text = memcpy(mem_take(size), data + 1, size);
    encode_run(worker[replace], &h, text, &whole);
    BUG_IF((whole.h.status == OK) != (whole.e.text[0] == 0));
    BUG_IF(replace && h.format != INPUT_JSONL && whole.h.status != OK);
    if (replace && h.format == INPUT_TEXT)
        two_parts(text, size);
    if (h.format == INPUT_JSONL)
        two_readers(text, size);
    mem_give(text);
    return 0;
}
