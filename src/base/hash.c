#include "base/hash.h"

#include "base/err.h"

#include <stdio.h>
#include <xxhash.h>

static struct hash_text hash_print(XXH128_hash_t h)
{
    struct hash_text t;

    snprintf(t.s, sizeof t.s, "%016llx%016llx", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
    return t;
}

struct hash_text hash_bytes(const void *p, size_t n)
{
    return hash_print(XXH3_128bits(p, n));
}

/* The library's own state (64-byte aligned by it) behind our name. */
struct hash_stream *hash_open(void)
{
    XXH3_state_t *s = XXH3_createState();

    if (!s || XXH3_128bits_reset(s) != XXH_OK)
        die(E_RESOURCE, "out of memory: no room for the state of a hash");
    return (struct hash_stream *)s;
}

void hash_add(struct hash_stream *h, const void *p, size_t n)
{
    if (n > 0 && XXH3_128bits_update((XXH3_state_t *)h, p, n) != XXH_OK)
        die(E_BUG, "hash of %zu bytes failed", n);
}

struct hash_text hash_close(struct hash_stream *h)
{
    struct hash_text t = hash_print(XXH3_128bits_digest((XXH3_state_t *)h));

    XXH3_freeState((XXH3_state_t *)h);
    return t;
}

static void pair_of(XXH128_hash_t h, uint64_t to[2])
{
    to[0] = h.low64;
    to[1] = h.high64;
}

void hash_pair(const void *p, size_t n, uint64_t to[2])
{
    pair_of(XXH3_128bits(p, n), to);
}

void hash_close_pair(struct hash_stream *h, uint64_t to[2])
{
    pair_of(XXH3_128bits_digest((XXH3_state_t *)h), to);
    XXH3_freeState((XXH3_state_t *)h);
}
