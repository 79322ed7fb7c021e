/* The set of hashes of --drop-duplicates, and text with U+FFFD made piece by piece. */
#include "convert/seen.h"

#include "base/arena.h"
#include "base/hash.h"
#include "tests/tap.h"
#include "text/utf8.h"

static void hash_of(uint64_t i, uint64_t to[2])
{
    hash_pair(&i, sizeof i, to);
}

static void test_seen(void)
{
    enum { N = 1000000 };
    struct seen *s = seen_open();
    int64_t before = mem_resident(), bytes;
    uint64_t h[2], zero[2] = { 0, 0 };
    int fresh = 0, again = 0;

    for (uint64_t i = 0; i < N; i++) {
        hash_of(i, h);
        fresh += seen_add(s, h);
        hash_of(i / 2, h);
        again += seen_add(s, h);
    }
    bytes = (mem_resident() - before) / N;
    tap_ok(fresh == N && again == 0, "a million hashes, each new once");
    printf("# %lld bytes each\n", (long long)bytes);
#ifdef __SANITIZE_ADDRESS__
    tap_skip(1, "the sanitizer keeps what is given back");
#else
    tap_ok(bytes <= 24, "in at most 24 bytes each");
#endif
    tap_ok(seen_add(s, zero) && !seen_add(s, zero), "a hash of zeros");
    seen_close(s);
}

static void test_replace(void)
{
    static const char bad[] =
        "a\xff\xc3\xe4\xb8\xf0\x9f\x99\x80z\xed\xa0\x80\xe4\xb8\xad\x80\x80\x80\x80\x80\xf4\x90";
    char whole[3 * sizeof bad], parts[3 * sizeof bad];
    size_t n = sizeof bad - 1, want;
    int64_t count = 0;
    int good = 1;

    want = utf8_replace(whole, bad, n, &count);
    tap_ok(count == 13, "one for each longest begin: %lld", (long long)count);
    for (size_t k = 5; k <= n; k++) { /* a buffer of k bytes, filled up again and again */
        size_t at = 0, to = 0;

        while (at < n) {
            size_t here = n - at < k ? n - at : utf8_whole(bad + at, k);

            to += utf8_replace(parts + to, bad + at, here, &count);
            at += here;
        }
        good &= to == want && memcmp(whole, parts, to) == 0;
    }
    tap_ok(good, "in pieces of every size the same");
}

int main(void)
{
    tap_plan(5);
    test_seen();
    test_replace();
    return tap_done();
}
