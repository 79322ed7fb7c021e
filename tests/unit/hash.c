#include "base/hash.h"

#include "tests/tap.h"

int main(void)
{
    static unsigned char data[100000];
    struct hash_stream *h = hash_open();
    struct hash_text whole, parts;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t at = 0, n = 0; at < sizeof data; at += n) {
        n = at % 1000 + 1 < sizeof data - at ? at % 1000 + 1 : sizeof data - at;
        hash_add(h, data + at, n);
    }
    hash_add(h, NULL, 0);
    parts = hash_close(h);
    whole = hash_bytes(data, sizeof data);
    tap_plan(3);
    /* published value of XXH3-128 over no bytes, seed 0 */
    tap_ok(strcmp(hash_bytes("", 0).s, "99aa06d3014798d86001c324468d497f") == 0, "no bytes");
    tap_ok(strcmp(whole.s, parts.s) == 0 && strlen(whole.s) == 32, "in parts as in one");
    data[50000] ^= 1;
    tap_ok(strcmp(whole.s, hash_bytes(data, sizeof data).s) != 0, "one bit changes it");
    return tap_done();
}
