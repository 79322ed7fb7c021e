/* libFuzzer: any bytes as a file of JSON lines. Texts that come out are UTF-8; a fault names the
 * file and the line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "convert/jsonl.h"
#include "text/utf8.h"

static char path[] = "/tmp/pretrain-fuzz.XXXXXX";

static void clean(void)
{
    unlink(path);
}

static void save(const void *p, size_t n)
{
    static int fd = -1;

    if (fd < 0) {
        fd = mkstemp(path);
        atexit(clean);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, p, n, 0) != (ssize_t)n)
        die(E_FILE, "cannot write %s", path);
}

static void check_fault(const struct jsonl *j, enum status st, const struct err *e)
{
    char place[64];

    if (st == OK)
        return;
    snprintf(place, sizeof place, "%s:%lld: ", path, (long long)jsonl_line(j));
    if (st != E_FILE || strncmp(e->text, place, strlen(place)) != 0)
        die(E_BUG, "no place is named: %s", e->text);
}

/* How many texts there are up to the end or the first fault. */
static int64_t read_texts(struct file *f, size_t n)
{
    struct jsonl *j = jsonl_open(f, "text");
    struct err e = { "" };
    const char *text;
    size_t bytes;
    enum status st;
    int64_t k = 0;

    while ((st = jsonl_next(j, &text, &bytes, &e)) == OK && text) {
        struct utf8_check u = { 0 };

        BUG_IF(utf8_check_add(&u, text, bytes) || utf8_check_end(&u) || text[bytes]);
        BUG_IF(++k > jsonl_line(j) || jsonl_done(j) > (int64_t)n);
    }
    BUG_IF(st == OK && jsonl_done(j) != (int64_t)n);
    check_fault(j, st, &e);
    jsonl_close(j);
    return k;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct file f;
    struct err e = { "" };
    const json_t *object;
    struct jsonl *j;
    int64_t texts, objects = 0;
    enum status st;

    save(p, n);
    if (file_open(&f, path, FILE_READ, &e) != OK)
        die(E_FILE, "%s", e.text);
    texts = read_texts(&f, n);
    j = jsonl_open(&f, "text");
    while ((st = jsonl_next_object(j, &object, &e)) == OK && object)
        objects++;
    check_fault(j, st, &e);
    BUG_IF(objects < texts);
    jsonl_close(j);
    file_close(&f, NULL);
    return 0;
}
