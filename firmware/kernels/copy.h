/* Short copies, in place of memcpy and memset: the same instructions under every C library. */
#ifndef TWIN_COPY_H
#define TWIN_COPY_H

#include <stdint.h>

#if defined(__riscv) || (defined(__ARM_ARCH) && __ARM_ARCH < 7)
#define WORD_COPIES 0  /* no unaligned loads to rely on */
#else
#define WORD_COPIES 1
#endif

static inline void copy_bytes(void *to, const void *from, int32_t count)
{
    int8_t *target = to;
    const int8_t *source = from;
#if WORD_COPIES
    for (; count >= 4; count -= 4, target += 4, source += 4) {
        uint32_t word;
        __builtin_memcpy(&word, source, 4);
        __builtin_memcpy(target, &word, 4);
    }
#endif
    for (; count > 0; count--)
        *target++ = *source++;
}

static inline void fill_bytes(void *to, int8_t value, int32_t count)
{
    int8_t *target = to;
#if WORD_COPIES
    const uint32_t word = 0x01010101u * (uint8_t)value;
    for (; count >= 4; count -= 4, target += 4)
        __builtin_memcpy(target, &word, 4);
#endif
    for (; count > 0; count--)
        *target++ = value;
}

#endif
