#include "probes.h"

#include "dot.h"
#include "mac_code.h"

/* A compiler that was told of no floating-point unit assembles none of its instructions. */
#if defined(__arm__) && !defined(__ARM_FP)
#undef MAC_FLOAT
#endif

/* mac_code.h, written with the list of probes, defines MAC_INT8, MAC_INT16 and MAC_FLOAT: assembly
 * text, written out so that the compiler knows its length, and the registers it changes. Without a
 * definition nothing is done, and no probe asks for it. */

void multiply_int8(uint32_t laps)
{
#ifdef MAC_INT8
    for (; laps > 0; laps--)
        __asm__ volatile(MAC_INT8 : : : MAC_INT8_CHANGES);
#else
    (void)laps;
#endif
}

void multiply_int16(uint32_t laps)
{
#ifdef MAC_INT16
    for (; laps > 0; laps--)
        __asm__ volatile(MAC_INT16 : : : MAC_INT16_CHANGES);
#else
    (void)laps;
#endif
}

void multiply_float(uint32_t laps)
{
#ifdef MAC_FLOAT
    for (; laps > 0; laps--)
        __asm__ volatile(MAC_FLOAT : : : MAC_FLOAT_CHANGES);
#else
    (void)laps;
#endif
}

void dot_int8(const void *room, uint32_t extent, uint32_t laps)
{
    const int8_t *const rows = room;
    for (; laps > 0; laps--)  /* the compiler must not know that the sum is the same each time */
        __asm__ volatile("" : : "r"(dot_1x1(rows, rows + extent, (int32_t)extent)) : "memory");
}
