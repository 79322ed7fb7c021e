#include "text/utf8.h"

#include <string.h>

/* First bytes of longer characters: how many bytes follow, and the range of the first of them. */
static const struct lead {
    unsigned char first, last, follow, low, high;
} leads[] = {
    { 0xc2, 0xdf, 1, 0x80, 0xbf }, { 0xe0, 0xe0, 2, 0xa0, 0xbf }, { 0xe1, 0xec, 2, 0x80, 0xbf },
    { 0xed, 0xed, 2, 0x80, 0x9f }, { 0xee, 0xef, 2, 0x80, 0xbf }, { 0xf0, 0xf0, 3, 0x90, 0xbf },
    { 0xf1, 0xf3, 3, 0x80, 0xbf }, { 0xf4, 0xf4, 3, 0x80, 0x8f },
};

static int lead_take(struct utf8_check *u, unsigned char c)
{
    for (int i = 0; i < COUNT_OF(leads); i++) {
        const struct lead *l = &leads[i];

        if (c >= l->first && c <= l->last) {
            u->need = l->follow;
            u->low = l->low;
            u->high = l->high;
            return 0;
        }
    }
    return 1;
}

static size_t ascii_run(const unsigned char *p, size_t n)
{
    size_t i = 0;
    uint64_t eight;

    for (; i + 8 <= n; i += 8) {
        memcpy(&eight, p + i, 8);
        if (eight & 0x8080808080808080u)
            break;
    }
    while (i < n && p[i] < 0x80)
        i++;
    return i;
}

/* Whole characters beyond ASCII: how many bytes of them are good. It stops at ASCII, near the end
 * and at what it does not take, which is looked at byte by byte. */
static size_t high_run(const unsigned char *p, size_t n)
{
    size_t i = 0;

    while (i + 4 <= n && p[i] >= 0x80) {
        uint32_t x, c;

        memcpy(&x, p + i, 4); /* little-endian: the first byte is the lowest */
        if ((x & 0xc0e0) == 0x80c0 && (x & 0x1e)) {
            i += 2;
        } else if ((x & 0xc0c0f0) == 0x8080e0) {
            c = (x & 0xf) << 12 | (x >> 2 & 0xfc0) | (x >> 16 & 0x3f);
            if (c < 0x800 || c - 0xd800 < 0x800)
                break;
            i += 3;
        } else if ((x & 0xc0c0c0f8) == 0x808080f0) {
            c = (x & 7) << 18 | (x << 4 & 0x3f000) | (x >> 10 & 0xfc0) | (x >> 24 & 0x3f);
            if (c - 0x10000 >= 0x100000)
                break;
            i += 4;
        } else {
            break;
        }
    }
    return i;
}

int utf8_check_add(struct utf8_check *u, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t i = 0;

    while (i < n) {
        if (u->need == 0) {
            i += ascii_run(p + i, n - i);
            i += high_run(p + i, n - i);
            if (i == n)
                break;
            if (p[i] < 0x80)
                continue;
            if (lead_take(u, p[i])) {
                u->at += (int64_t)i;
                return 1;
            }
        } else if (p[i] < u->low || p[i] > u->high) {
            u->at += (int64_t)i;
            return 1;
        } else {
            u->need--;
            u->low = 0x80;
            u->high = 0xbf;
        }
        i++;
    }
    u->at += (int64_t)n;
    return 0;
}

int utf8_check_end(const struct utf8_check *u)
{
    return u->need != 0;
}

static char *put_replacement(char *to, int64_t *count)
{
    memcpy(to, "\xef\xbf\xbd", 3);
    ++*count;
    return to + 3;
}

size_t utf8_replace(char *to, const char *bytes, size_t n, int64_t *count)
{
    char *out = to;
    size_t from = 0; /* what is before has been put */

    while (from < n) {
        struct utf8_check u = { 0 };
        size_t good, bad, at;

        if (!utf8_check_add(&u, bytes + from, n - from) && !utf8_check_end(&u)) {
            memcpy(out, bytes + from, n - from);
            return (size_t)(out - to) + n - from;
        }
        /* bad: where it fails; the character that is cut there begins at `good` */
        bad = good = from + (size_t)u.at;
        while (good > from && bad - good < 3 && u.need)
            if (((unsigned char)bytes[--good] & 0xc0) != 0x80)
                break;
        memcpy(out, bytes + from, good - from);
        out = put_replacement(out + (good - from), count);
        at = bad > good ? bad : bad + 1;
        from = at;
    }
    return (size_t)(out - to);
}

size_t utf8_whole(const char *bytes, size_t n)
{
    for (size_t k = 1; k <= 4 && k <= n; k++)
        if (((unsigned char)bytes[n - k] & 0xc0) != 0x80)
            return n - k;
    return n;
}
