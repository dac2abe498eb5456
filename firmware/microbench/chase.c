#include "probes.h"

/* Multiplier and increment of a generator modulo 2^n that visits every residue (Numerical Recipes,
 * 7.1). */
#define MULTIPLIER 1664525u
#define INCREMENT 1013904223u

static inline uint32_t load(const uint8_t *base, uint32_t offset)
{
    return *(const volatile uint32_t *)(const void *)(base + offset);
}

/* Zero from `extent` on, without a branch: a lap's end costs no more than any step. */
static inline uint32_t wrap(uint32_t offset, uint32_t extent)
{
    return offset & (uint32_t)((int32_t)(offset - extent) >> 31);
}

void chase(const void *room, uint32_t extent, uint32_t stride, uint32_t laps)
{
    uint32_t offset = 0;
    for (uint32_t left = extent / stride * laps; left > 0; left--)
        offset = wrap(offset + stride + load(room, offset), extent);
}

void chase_shuffled(const void *room, uint32_t extent, uint32_t stride, uint32_t laps)
{
    const uint32_t steps = extent / stride;
    uint32_t place = 0;
    for (uint32_t left = steps * laps; left > 0; left--)
        place = (place * MULTIPLIER + INCREMENT + load(room, place * stride)) & (steps - 1u);
}

void clear_room(void *room, uint32_t extent)
{
    volatile uint32_t *const words = room;
    for (uint32_t i = 0; i < extent / 4u; i++)
        words[i] = 0;
}
