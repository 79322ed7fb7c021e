/* usage: tokenize TOKENIZER TEXT [ROUNDS]. Prints the MB/s of encoding a file in one thread: the
 * first time with a new encoder (cold), and the median of ROUNDS [5] more (warm); then ids and
 * their sum. The file holds documents that end in NUL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "text/encoder.h"

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of this thread, so that others on the machine matter less. */
static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double pass(struct encoder *c, const char *text, size_t n, struct ids *ids, struct err *e)
{
    double begin = cpu_seconds();

    ids->n = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, 0, n - at);
        size_t k = end ? (size_t)(end - text) - at : n - at;

        if (encoder_encode(c, text + at, k, 0, ids, e) != OK)
            return 0;
        at += k + 1;
    }
    return (double)n * 1e-6 / (cpu_seconds() - begin);
}

int main(int argc, char **argv)
{
    struct tokenizer *t = NULL;
    struct encoder *c;
    struct ids ids = { 0 };
    struct err e = { "" };
    char *json, *text;
    size_t n, m;
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    double cold, *warm = mem_take((size_t)(rounds + 1) * sizeof *warm);
    uint64_t sum = 0;

    if (argc < 3 || file_read_text(argv[1], (size_t)1 << 30, &json, &n, &e) != OK ||
        file_read_text(argv[2], (size_t)1 << 32, &text, &m, &e) != OK ||
        tokenizer_open(&t, json, n, &e) != OK) {
        fprintf(stderr, "%s\n", argc < 3 ? "usage: tokenize TOKENIZER TEXT [ROUNDS]" : e.text);
        return 2;
    }
    ids_grow(&ids, m + 16);
    memset(ids.at, 1, (m + 16) * sizeof *ids.at); /* pages are there before the clock starts */
    c = encoder_open(t);
    cold = pass(c, text, m, &ids, &e);
    for (int i = 0; i < rounds; i++)
        warm[i] = pass(c, text, m, &ids, &e);
    qsort(warm, (size_t)rounds, sizeof *warm, by_size);
    for (size_t i = 0; i < ids.n; i++)
        sum += (uint64_t)ids.at[i] * ((uint64_t)i * 2654435761u + 1);
    printf("%.1f %.1f %zu %llu\n", cold, rounds ? warm[rounds / 2] : 0, ids.n,
           (unsigned long long)sum);
    encoder_close(c);
    tokenizer_close(t);
    return !cold;
}
