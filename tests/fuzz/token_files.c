/* libFuzzer: heads, indices and lists of the token files that other programs wrote. Byte 0 of the
 * input says which file the rest is; what belongs beside it is good. Whatever it holds, opening it,
 * reading all samples and checking all must end with OK or E_FILE, and the message names a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "data/sampler.h"

enum { N = 200 }; /* tokens, of 2 bytes, in a good file */

static char dir[] = "/tmp/pretrain-fuzz.XXXXXX", path[4][64];
enum { BIN, IDX, INDEX, METADATA };

static void save(int which, const void *p, size_t n)
{
    struct file f; /* not synced: speed */

    if (file_open(&f, path[which], FILE_REPLACE, NULL) != OK ||
        file_write_at(&f, p, n, 0, NULL) != OK)
        die(E_FILE, "cannot write %s", path[which]);
    file_close(&f, NULL);
}

static void clean(void)
{
    file_remove_tree(dir, NULL);
}

static void begin(void)
{
    static const char *const names[] = { "x.bin", "x.idx", "x.bin.index", "x.bin.metadata" };

    if (!mkdtemp(dir))
        die(E_FILE, "cannot make %s", dir);
    atexit(clean);
    log_speaker(0);
    for (int i = 0; i < COUNT_OF(names); i++)
        snprintf(path[i], sizeof path[i], "%s/%s", dir, names[i]);
}

/* Sample by sample, with documents, then everything. */
static void read_all(const struct tokens_stated *stated)
{
    int32_t rows[5][8];
    struct batch_rows b = { rows[0], rows[1], rows[2], rows[3], rows[4] };
    const char *name = path[BIN];
    struct err e = { "" };
    struct corpus c;
    int64_t largest;

    if (corpus_open(&c, &name, 1, 8, stated, &e) != OK) {
        if (!strstr(e.text, dir))
            die(E_BUG, "no file is named: %s", e.text);
        return;
    }
    corpus_limit(&c, 50000, 1, &e);
    for (int64_t k = 0; k < c.samples && k < 64; k++)
        batch_fill(&c, &b, 0, k, c.file[0].ndocuments > 0 || c.file[0].eod >= 0, 1, &e);
    for (int64_t at = 0; at < c.count && c.file[0].ndocuments; at += 37)
        tokens_document_start(&c.file[0], at);
    tokens_check(&c.file[0], &largest, &e);
    corpus_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static uint16_t good[N];
    static const uint64_t ends[] = { 3, 3, 100, N };
    struct tokens_stated stated = { -1, -1 };

    if (!path[0][0])
        begin();
    if (n < 1)
        return 0;
    for (int i = 0; i < N; i++)
        good[i] = (uint16_t)(i * 7);
    for (int i = 0; i < COUNT_OF(path); i++)
        file_remove(path[i], NULL);
    switch (p[0] % 5) {
    case 0:
        save(BIN, good, sizeof good);
        save(IDX, p + 1, n - 1);
        break;
    case 1:
        save(BIN, good, sizeof good);
        save(INDEX, p + 1, n - 1);
        break;
    case 2:
        save(BIN, good, sizeof good);
        save(INDEX, ends, sizeof ends);
        save(METADATA, p + 1, n - 1);
        break;
    case 3:
        save(BIN, p + 1, n - 1);
        break;
    default:
        save(BIN, p + 1, n - 1);
        stated = (struct tokens_stated){ (const int[]){ U16, U32, I32, I64 }[p[0] / 5 % 4], 7 };
        break;
    }
    read_all(&stated);
    return 0;
}
