/* Dot products on Armv7E-M and Armv8-M with the DSP extension: four values a word, bytes 0 and 2,
 * then 1 and 3, widened to halfwords and multiplied in pairs. */
#include <arm_acle.h>

#define KERNEL_ISA "dsp"

static inline int32_t read_word(const int8_t *bytes)
{
    int32_t word;
    __builtin_memcpy(&word, bytes, 4);  /* one unaligned load */
    return word;
}

static inline int32_t rotate(int32_t word)
{
    return (int32_t)((uint32_t)word >> 8 | (uint32_t)word << 24);  /* GCC 12 lacks __ror */
}

static inline int16x2_t even_bytes(int32_t word)
{
    return __sxtb16(word);
}

static inline int16x2_t odd_bytes(int32_t word)
{
    return __sxtb16(rotate(word));
}

static inline int32_t dot_1x1(const int8_t *a, const int8_t *w, int32_t depth)
{
    int32_t sum = 0;
    const int8_t *const end = a + (depth & ~3);
    for (; a < end; a += 4, w += 4) {
        const int32_t x = read_word(a), v = read_word(w);
        sum = __smlad(even_bytes(x), even_bytes(v), sum);
        sum = __smlad(odd_bytes(x), odd_bytes(v), sum);
    }
    for (int32_t i = 0; i < (depth & 3); i++)
        sum += a[i] * w[i];
    return sum;
}

static inline void dot_1x2(const int8_t *a, const int8_t *w, int32_t depth, int32_t sums[2])
{
    int32_t s0 = sums[0], s1 = sums[1];
    const int8_t *const end = a + (depth & ~3);
    for (; a < end; a += 4, w += 4) {
        const int32_t x = read_word(a), v0 = read_word(w), v1 = read_word(w + depth);
        const int16x2_t even = even_bytes(x), odd = odd_bytes(x);
        s0 = __smlad(even, even_bytes(v0), s0);
        s0 = __smlad(odd, odd_bytes(v0), s0);
        s1 = __smlad(even, even_bytes(v1), s1);
        s1 = __smlad(odd, odd_bytes(v1), s1);
    }
    for (int32_t i = 0; i < (depth & 3); i++) {
        s0 += a[i] * w[i];
        s1 += a[i] * w[depth + i];
    }
    sums[0] = s0;
    sums[1] = s1;
}

static inline void dot_2x2(const int8_t *a, const int8_t *w, int32_t depth, int32_t sums[2][2])
{
    int32_t s00 = sums[0][0], s01 = sums[0][1], s10 = sums[1][0], s11 = sums[1][1];
    const int8_t *const end = a + (depth & ~3);
    for (; a < end; a += 4, w += 4) {
        const int32_t x0 = read_word(a), x1 = read_word(a + depth);
        const int16x2_t even0 = even_bytes(x0), odd0 = odd_bytes(x0);
        const int16x2_t even1 = even_bytes(x1), odd1 = odd_bytes(x1);
        const int32_t v0 = read_word(w);
        int16x2_t even = even_bytes(v0), odd = odd_bytes(v0);
        s00 = __smlad(even0, even, s00);
        s00 = __smlad(odd0, odd, s00);
        s10 = __smlad(even1, even, s10);
        s10 = __smlad(odd1, odd, s10);
        const int32_t v1 = read_word(w + depth);
        even = even_bytes(v1);
        odd = odd_bytes(v1);
        s01 = __smlad(even0, even, s01);
        s01 = __smlad(odd0, odd, s01);
        s11 = __smlad(even1, even, s11);
        s11 = __smlad(odd1, odd, s11);
    }
    for (int32_t i = 0; i < (depth & 3); i++) {
        s00 += a[i] * w[i];
        s01 += a[i] * w[depth + i];
        s10 += a[depth + i] * w[i];
        s11 += a[depth + i] * w[depth + i];
    }
    sums[0][0] = s00;
    sums[0][1] = s01;
    sums[1][0] = s10;
    sums[1][1] = s11;
}
