/* Hits and misses of the cache in front of the flash: counters of 32 bits that run on. The variant
 * says where they are and how the cache is switched. */
#include "monitors.h"
#include "nrf.h"
#include "variant.h"

#define EVENT(number, label) \
    {.id = (number), .clock = WIRE_C_EVENTS, .bits = 32, .name = label}
static const struct wire_counter monitors[MONITORS] = {
    EVENT(WIRE_N_ICACHE_HIT, "icache hit"), EVENT(WIRE_N_ICACHE_MISS, "icache miss"),
#if MONITORS > 2
    EVENT(WIRE_N_DCACHE_READ_HIT, "dcache read hit"),
    EVENT(WIRE_N_DCACHE_READ_MISS, "dcache read miss"),
#endif
};

static uint32_t read_monitor(uint32_t place)
{
    return REGISTER(MONITOR_BASE + 4u * place);
}

void start_flash_cache(void)
{
    SWITCH_CACHE_ON();
    join_monitors(monitors, MONITORS, read_monitor);
}

void empty_flash_cache(void)
{
    EMPTY_CACHE();
    barrier();
}
