/* Caches by set and way, as the core's own registers describe them; nothing where it has none. */
#include "cortex_m.h"

#if __ARM_ARCH >= 7

uint32_t has_caches(void)
{
    return (SCB_CLIDR & 7u) != 0;
}

/* Write `set | way` of every line of the first data cache to a maintenance register. */
static void each_line(volatile uint32_t *operation)
{
    SCB_CSSELR = 0;
    barrier();
    const uint32_t size = SCB_CCSIDR;
    const uint32_t line_shift = (size & 7u) + 4u;
    const uint32_t ways = ((size >> 3) & 0x3ffu) + 1u, sets = ((size >> 13) & 0x7fffu) + 1u;
    uint32_t way_shift = 32;
    while ((1u << (32u - way_shift)) < ways)
        way_shift--;
    for (uint32_t set = 0; set < sets; set++)
        for (uint32_t way = 0; way < ways; way++)
            *operation = set << line_shift | (way_shift < 32 ? way << way_shift : 0);
    barrier();
}

void enable_caches(void)
{
    if (!has_caches())
        return;
    SCB_ICIALLU = 0;
    each_line(&SCB_DCISW);
    SCB_CCR |= CCR_IC | CCR_DC;
    barrier();
}

void clean_invalidate_caches(void)
{
    if (!has_caches())
        return;
    barrier();
    each_line(&SCB_DCCISW);
    SCB_ICIALLU = 0;
    barrier();
}

#else

uint32_t has_caches(void)
{
    return 0;
}

void enable_caches(void)
{
}

void clean_invalidate_caches(void)
{
}

#endif
