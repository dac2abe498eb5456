/* Hits and misses of the cache in front of the flash: counters of 32 bits that run on. The variant
 * says where they are and how the cache is switched. */
#include "nrf.h"
#include "variant.h"

#define EVENT(number, label) \
    {.id = (number), .clock = WIRE_C_EVENTS, .bits = 32, .name = label}
static struct wire_counter list_of_all[MONITORS + 8] = {
    EVENT(WIRE_N_ICACHE_HIT, "icache hit"), EVENT(WIRE_N_ICACHE_MISS, "icache miss"),
#if MONITORS > 2
    EVENT(WIRE_N_DCACHE_READ_HIT, "dcache read hit"),
    EVENT(WIRE_N_DCACHE_READ_MISS, "dcache read miss"),
#endif
};
static uint32_t core_count;
static uint8_t chosen[WIRE_EVENTS_MAX];
static uint32_t chosen_count;

void start_flash_cache(void)
{
    const struct wire_counter *core;
    SWITCH_CACHE_ON();
    core_count = core_events(&core);
    for (uint32_t i = 0; i < core_count; i++)
        list_of_all[MONITORS + i] = core[i];
}

void empty_flash_cache(void)
{
    EMPTY_CACHE();
    barrier();
}

uint32_t cache_events(const struct wire_counter **list)
{
    *list = list_of_all;
    return MONITORS + core_count;
}

static uint32_t find(uint16_t id)
{
    uint32_t place = 0;
    while (place < MONITORS + core_count && list_of_all[place].id != id)
        place++;
    return place;
}

uint32_t select_cache_events(const uint16_t *ids, uint32_t count)
{
    uint16_t core_ids[WIRE_EVENTS_MAX];
    uint32_t core = 0;
    for (uint32_t i = 0; i < count; i++) {
        chosen[i] = (uint8_t)find(ids[i]);
        if (chosen[i] >= MONITORS)
            core_ids[core++] = ids[i];
    }
    chosen_count = count;
    return select_core_events(core_ids, core);
}

void read_cache_events(uint32_t *values)
{
    uint32_t core_values[WIRE_EVENTS_MAX];
    uint32_t core = 0;
    read_core_events(core_values);
    for (uint32_t i = 0; i < chosen_count; i++)
        values[i] = chosen[i] < MONITORS ? REGISTER(MONITOR_BASE + 4u * chosen[i])
                                         : core_values[core++];
}
