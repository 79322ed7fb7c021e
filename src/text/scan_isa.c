#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "text/scan.h"

/* ---- any machine ---- */

enum { LETTER = 1, NUMBER = 2, SPACE = 4, NEWLINE = 8, BLANK = 16, QUOTE = 32, HIGH = 64 };

static int class_of(int c)
{
    if (c >= 0x80)
        return HIGH;
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
        return LETTER;
    if (c >= '0' && c <= '9')
        return NUMBER;
    if (c == '\n' || c == '\r')
        return SPACE | NEWLINE;
    if (c == ' ')
        return SPACE | BLANK;
    return c >= '\t' && c <= '\r' ? SPACE : c == '\'' ? QUOTE : 0;
}

void scan_classify_baseline(const unsigned char *p, size_t blocks, struct scan_masks *to)
{
    uint8_t table[256];

    for (int c = 0; c < 256; c++)
        table[c] = (uint8_t)class_of(c);
    for (size_t b = 0; b < blocks; b++, p += 64) {
        struct scan_masks m = { 0 };

        for (int i = 0; i < 64; i++) {
            uint64_t k = table[p[i]];

            m.letter |= (k & 1) << i;
            m.number |= (k >> 1 & 1) << i;
            m.space |= (k >> 2 & 1) << i;
            m.newline |= (k >> 3 & 1) << i;
            m.blank |= (k >> 4 & 1) << i;
            m.quote |= (k >> 5 & 1) << i;
            m.high |= (k >> 6 & 1) << i;
        }
        to[b] = m;
    }
}

#ifdef __x86_64__
/* ---- AVX2 ---- */

#define AVX2 __attribute__((target("avx2")))

/* Bytes from lo to hi, both below 0x80. */
AVX2 static uint32_t within(__m256i v, char lo, char hi)
{
    __m256i x = _mm256_sub_epi8(v, _mm256_set1_epi8(lo));

    return (uint32_t)_mm256_movemask_epi8(
        _mm256_cmpeq_epi8(_mm256_min_epu8(x, _mm256_set1_epi8((char)(hi - lo))), x));
}

AVX2 static uint32_t equal(__m256i v, char c)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_set1_epi8(c)));
}

AVX2 void scan_classify_avx2(const unsigned char *p, size_t blocks, struct scan_masks *to)
{
    for (size_t b = 0; b < blocks; b++, p += 64) {
        struct scan_masks m = { 0 };

        for (int i = 0; i < 64; i += 32) {
            __m256i v = _mm256_loadu_si256((const __m256i *)(p + i));
            uint64_t blank = equal(v, ' ');

            m.letter |= (uint64_t)within(_mm256_or_si256(v, _mm256_set1_epi8(0x20)), 'a', 'z') << i;
            m.number |= (uint64_t)within(v, '0', '9') << i;
            m.blank |= blank << i;
            m.space |= (blank | within(v, '\t', '\r')) << i;
            m.newline |= (uint64_t)(equal(v, '\n') | equal(v, '\r')) << i;
            m.quote |= (uint64_t)equal(v, '\'') << i;
            m.high |= (uint64_t)(uint32_t)_mm256_movemask_epi8(v) << i;
        }
        to[b] = m;
    }
}

/* ---- AVX-512 ---- */

#define AVX512 __attribute__((target("avx512f,avx512bw")))

AVX512 static uint64_t within512(__m512i v, char lo, char hi)
{
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8(lo)),
                                  _mm512_set1_epi8((char)(hi - lo)));
}

AVX512 static uint64_t equal512(__m512i v, char c)
{
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(c));
}

AVX512 void scan_classify_avx512(const unsigned char *p, size_t blocks, struct scan_masks *to)
{
    for (size_t b = 0; b < blocks; b++, p += 64) {
        __m512i v = _mm512_loadu_si512(p);

        to[b].letter = within512(_mm512_or_si512(v, _mm512_set1_epi8(0x20)), 'a', 'z');
        to[b].number = within512(v, '0', '9');
        to[b].blank = equal512(v, ' ');
        to[b].space = to[b].blank | within512(v, '\t', '\r');
        to[b].newline = equal512(v, '\n') | equal512(v, '\r');
        to[b].quote = equal512(v, '\'');
        to[b].high = (uint64_t)_mm512_movepi8_mask(v);
    }
}
#else
void scan_classify_avx2(const unsigned char *p, size_t blocks, struct scan_masks *to)
{
    scan_classify_baseline(p, blocks, to); /* never chosen on this machine */
}
void scan_classify_avx512(const unsigned char *p, size_t blocks, struct scan_masks *to)
{
    scan_classify_baseline(p, blocks, to);
}
#endif

scan_classify *scan_classifier(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        return scan_classify_avx512;
    if (__builtin_cpu_supports("avx2"))
        return scan_classify_avx2;
#endif
    return scan_classify_baseline;
}
