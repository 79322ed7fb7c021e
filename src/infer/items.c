#include "infer/items.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

static int64_t grown(int64_t room, int64_t need)
{
    room = max_i64(room, 64);
    while (room < need)
        room *= 2;
    return room;
}

#define GROW(array, old, new) \
    (array) = mem_grow((array), sizeof *(array) * (size_t)(old), sizeof *(array) * (size_t)(new))

static void room_for_items(struct items *t, int64_t n)
{
    int64_t old = t->room_items, room = grown(old, n);

    if (n <= old)
        return;
    t->first = mem_grow(t->first, old ? sizeof *t->first * (size_t)(old + 1) : 0,
                        sizeof *t->first * (size_t)(room + 1));
    GROW(t->from, old, room);
    GROW(t->group, old, room);
    t->room_items = room;
}

static void room_for_ids(struct items *t, int64_t n)
{
    int64_t room = grown(t->room_ids, n);

    if (n <= t->room_ids)
        return;
    GROW(t->ids, t->room_ids, room);
    t->room_ids = room;
}

void items_free(struct items *t)
{
    void *const all[] = { t->first, t->from, t->group, t->ids };

    for (int i = 0; i < COUNT_OF(all); i++)
        mem_give(all[i]);
    *t = (struct items){ 0 };
}

void items_begin(struct items *t, int64_t group)
{
    room_for_items(t, t->n + 1);
    t->from[t->n] = 0;
    t->group[t->n++] = group;
    t->first[t->n] = t->nids;
}

void items_put(struct items *t, const int32_t *ids, int64_t n)
{
    room_for_ids(t, t->nids + n);
    memcpy(t->ids + t->nids, ids, sizeof *ids * (size_t)n);
    t->first[t->n] = t->nids += n;
}

int64_t items_longest(const struct items *t)
{
    int64_t most = 0;

    for (int64_t i = 0; i < t->n; i++)
        most = max_i64(most, items_length(t, i));
    return most;
}

enum status items_check(const struct items *t, const struct items_limits *l, const char *where,
                        struct err *e)
{
    int64_t at = t->first[t->n - 1], n = t->nids - at;

    if (n == 0)
        return err_set(e, E_FILE, "%s: no token: the model needs one to begin with", where);
    if (n > l->positions)
        return err_set(e, E_FILE,
                       "%s: %" PRId64 " tokens, but the model's max_position_embeddings is %" PRId64
                       ": shorten the line",
                       where, n, l->positions);
    for (int64_t i = 0; i < n; i++)
        if (t->ids[at + i] < 0 || t->ids[at + i] >= l->vocab_size)
            return err_set(e, E_FILE,
                           "%s: token %" PRId64 " has id %d, but the model's ids are 0 .. %" PRId64,
                           where, i, (int)t->ids[at + i], l->vocab_size - 1);
    return OK;
}

enum status items_put_list(struct items *t, const json_t *list, const char *where, struct err *e)
{
    size_t n = json_array_size(list);

    if (!json_is_array(list))
        return err_set(e, E_FILE, "%s: not a list of ids, such as [1, 2, 3]", where);
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(list, i);
        double v = json_number_value(x);
        int32_t id;
        if (!json_is_number(x) || v != floor(v) || v < 0 || v > INT32_MAX)
            return err_set(e, E_FILE, "%s: element %zu of the list is no id: ids are whole numbers",
                           where, i);
        id = (int32_t)v;
        items_put(t, &id, 1);
    }
    return OK;
}

enum status items_put_text(struct items *t, struct codec *c, const json_t *text, int start,
                           const char *where, struct err *e)
{
    const int32_t *ids;
    int64_t n;
    enum status st;

    if (!json_is_string(text))
        return err_set(e, E_FILE, "%s: not a text", where);
    st = codec_encode(c, json_string_value(text), json_string_length(text), start, &ids, &n, e);
    if (st != OK) {
        err_prefix(e, "%s", where);
        return st;
    }
    items_put(t, ids, n);
    return OK;
}

void items_share(struct items *t, struct comm *world)
{
    int64_t sizes[2] = { t->n, t->nids };

    comm_bytes_from(world, sizes, sizeof sizes, 0);
    room_for_items(t, sizes[0]);
    room_for_ids(t, sizes[1]);
    t->n = sizes[0];
    t->nids = sizes[1];
    if (t->n == 0)
        return;
    comm_bytes_from(world, t->first, sizeof *t->first * (size_t)(t->n + 1), 0);
    comm_bytes_from(world, t->from, sizeof *t->from * (size_t)t->n, 0);
    comm_bytes_from(world, t->group, sizeof *t->group * (size_t)t->n, 0);
    comm_bytes_from(world, t->ids, sizeof *t->ids * (size_t)t->nids, 0);
}

enum status items_read(const char *path, items_line *line, void *context, struct err *e)
{
    char where[4096 + 32];
    struct file f;
    struct jsonl *j;
    const json_t *object;
    enum status st = file_open(&f, path, FILE_READ, e);

    if (st != OK)
        return st;
    j = jsonl_open(&f, "ids");
    while ((st = jsonl_next_object(j, &object, e)) == OK && object) {
        snprintf(where, sizeof where, "%s:%" PRId64, path, jsonl_line(j));
        if ((st = line(context, object, where, e)) != OK)
            break;
    }
    jsonl_close(j);
    file_close(&f, NULL);
    return st;
}
