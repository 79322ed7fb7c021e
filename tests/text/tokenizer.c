/* Ids, texts and refusals of the small tokenizers in cases.json, which the `tokenizers` library
 * made; then what a data file cannot say. */
#include "text/tokenizer.h"

#include <jansson.h>

#include "tests/tap.h"
#include "text/decoder.h"
#include "text/encoder.h"

static json_t *data;

/* ---- cases ---- */

static json_t *whole(const json_t *c)
{
    const char *model = json_string_value(json_object_get(c, "model"));
    json_t *t = json_pack("{s:s}", "version", "1.0"), *parts = json_object_get(c, "parts");
    json_t *m = json_deep_copy(json_object_get(json_object_get(data, "models"), model));

    json_object_update(t, parts);
    json_object_update(m, json_object_get(parts, "model"));
    json_object_update(m, json_object_get(c, "options"));
    json_object_set_new(t, "model", m);
    if (json_object_get(c, "added"))
        json_object_set(t, "added_tokens", json_object_get(c, "added"));
    return t;
}

static enum status open_json(struct tokenizer **t, json_t *o, struct err *e)
{
    char *text = json_dumps(o, 0);
    enum status st = tokenizer_open(t, text, strlen(text), e);

    free(text);
    json_decref(o);
    return st;
}

static int same_ids(const struct ids *ids, const json_t *want)
{
    size_t n = json_array_size(want), i = 0;

    while (i < n && i < ids->n && ids->at[i] == json_integer_value(json_array_get(want, i)))
        i++;
    if (i == n && ids->n == n)
        return 1;
    printf("#   id %zu of %zu, %zu expected\n#   have:", i, ids->n, n);
    for (i = 0; i < ids->n; i++)
        printf(" %u", ids->at[i]);
    printf("\n#   want:");
    for (i = 0; i < n; i++)
        printf(" %lld", (long long)json_integer_value(json_array_get(want, i)));
    printf("\n");
    return 0;
}

/* As the library shows bytes that are no UTF-8: each longest begin of a character as U+FFFD. */
static void lossy(const struct buffer *b, struct buffer *to)
{
    static const struct {
        unsigned char first, last, n, low, high;
    } leads[] = { { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
                  { 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f },
                  { 0xee, 0xef, 3, 0x80, 0xbf }, { 0xf0, 0xf0, 4, 0x90, 0xbf },
                  { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f } };
    const unsigned char *p = (const unsigned char *)b->at;

    to->n = 0;
    for (size_t i = 0, k; i < b->n; i += k) {
        size_t want = 1;

        k = 1;
        for (int j = 0; p[i] >= 0x80 && j < COUNT_OF(leads); j++)
            if (p[i] >= leads[j].first && p[i] <= leads[j].last) {
                want = leads[j].n;
                if (i + 1 < b->n && p[i + 1] >= leads[j].low && p[i + 1] <= leads[j].high)
                    for (k = 2; k < want && i + k < b->n && (p[i + k] & 0xc0) == 0x80; k++)
                        ;
            }
        if (p[i] < 0x80 || (want > 1 && k == want))
            buffer_add(to, p + i, k);
        else
            buffer_text(to, "\xef\xbf\xbd");
    }
}

static int same_text(const struct tokenizer *t, const struct ids *ids, int skip, const json_t *want)
{
    struct decoder *d = decoder_open(t, skip);
    struct buffer b = { 0 }, shown = { 0 };
    int same = decoder_decode(d, ids->at, ids->n, &b, NULL) == OK;

    lossy(&b, &shown);
    same = same && shown.n == json_string_length(want) &&
           (!shown.n || memcmp(shown.at, json_string_value(want), shown.n) == 0);
    if (!same && shown.n)
        printf("#   decoded: %.*s\n#   want: %s\n", (int)shown.n, shown.at,
               json_string_value(want));
    decoder_close(d);
    buffer_free(&b);
    buffer_free(&shown);
    return same;
}

static int row_holds(const struct tokenizer *t, struct encoder *c, const json_t *row)
{
    const json_t *text = json_array_get(row, 0);
    const json_t *special = json_array_get(row, json_array_size(row) > 4 ? 4 : 1);
    struct ids ids = { 0 };
    struct err e = { "" };
    int good = 1;

    for (int twice = 0; twice < 2 && good; twice++) { /* the second time from memory */
        ids.n = 0;
        good = encoder_encode(c, json_string_value(text), json_string_length(text), 0, &ids, &e) ==
                   OK &&
               same_ids(&ids, json_array_get(row, 1));
    }
    ids.n = 0;
    good =
        good &&
        encoder_encode(c, json_string_value(text), json_string_length(text), 1, &ids, &e) == OK &&
        same_ids(&ids, special);
    for (int skip = 0; skip < 2 && good; skip++) {
        size_t at = skip && json_array_size(row) > 3 ? 3 : 2;

        if (json_is_string(json_array_get(row, at))) /* the library panics at some */
            good = same_text(t, &ids, skip, json_array_get(row, at));
    }
    if (!good)
        printf("#   text `%s` %s\n", json_string_value(text), e.text);
    ids_free(&ids);
    return good;
}

static void check_case(const json_t *c)
{
    const json_t *rows = json_object_get(c, "rows"), *row;
    const char *name = json_string_value(json_object_get(c, "name"));
    struct tokenizer *t;
    struct encoder *encoder;
    struct err e = { "" };
    size_t i;
    int good = 1;

    if (open_json(&t, whole(c), &e) != OK) {
        tap_ok(0, "%s: %s", name, e.text);
        return;
    }
    encoder = encoder_open(t);
    json_array_foreach(rows, i, row) good &= row_holds(t, encoder, row);
    tap_ok(good, "%s", name);
    encoder_close(encoder);
    tokenizer_close(t);
}

static void check_refused(const json_t *c)
{
    const char *why = json_string_value(json_object_get(c, "why"));
    struct tokenizer *t;
    struct err e = { "" };
    enum status st = open_json(&t, whole(c), &e);

    tap_ok(st == E_FILE && !t && strstr(e.text, why), "%s is refused",
           json_string_value(json_object_get(c, "name")));
    if (!strstr(e.text, why))
        printf("#   status %d, `%s`, expected `%s`\n", st, e.text, why);
    tokenizer_close(t);
}

int main(void)
{
    const char *source = getenv("srcdir");
    char path[4096];
    json_error_t why;
    const json_t *c;
    size_t i;

    snprintf(path, sizeof path, "%s/tests/text/cases.json", source ? source : ".");
    data = json_load_file(path, JSON_ALLOW_NUL, &why);
    if (!data) {
        printf("Bail out! %s:%d: %s\n", path, why.line, why.text);
        return 1;
    }
    tap_plan((int)(json_array_size(json_object_get(data, "cases")) +
                   json_array_size(json_object_get(data, "refused"))));
    json_array_foreach(json_object_get(data, "cases"), i, c) check_case(c);
    json_array_foreach(json_object_get(data, "refused"), i, c) check_refused(c);
    json_decref(data);
    return tap_done();
}
