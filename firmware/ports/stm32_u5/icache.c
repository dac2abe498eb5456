/* Caches of the STM32U5 and their hit and miss monitors (RM0456, ICACHE and DCACHE). The instruction
 * cache serves the flash, code and constants alike; the data cache serves external memories, which
 * no image here uses, so that it never holds what only it knows. */
#include "monitors.h"
#include "stm32.h"

#define ICACHE 0x40030400u
#define DCACHE 0x40031400u
#define CR_EN 1u
#define CR_CACHEINV 2u
#define SR 0x04u
#define SR_BUSYF 1u
#define RCC_AHB1ENR 0x46020c88u
#define DCACHE1EN (1u << 30)
#define MONITORS 6u

/* Miss monitors have 16 bits and stop at their greatest value, so every reading takes them over
 * into a sum and restarts them: a layer of 65535 misses or more reads as 65535. */
struct monitor {
    uint32_t cache, offset, enable;  /* enable bit in CR; its reset bit is two further up */
    uint32_t narrow;
};

static const struct monitor monitors[MONITORS] = {
    {ICACHE, 0x10, 1u << 16, 0}, {ICACHE, 0x14, 1u << 17, 1},
    {DCACHE, 0x10, 1u << 16, 0}, {DCACHE, 0x14, 1u << 17, 1},
    {DCACHE, 0x20, 1u << 20, 0}, {DCACHE, 0x24, 1u << 21, 1}};
static uint32_t sums[MONITORS];

#define EVENT(number, label) \
    {.id = (number), .clock = WIRE_C_EVENTS, .bits = 32, .name = label}
static const struct wire_counter named[MONITORS] = {
    EVENT(WIRE_N_ICACHE_HIT, "icache hit"), EVENT(WIRE_N_ICACHE_MISS, "icache miss"),
    EVENT(WIRE_N_DCACHE_READ_HIT, "dcache read hit"),
    EVENT(WIRE_N_DCACHE_READ_MISS, "dcache read miss"),
    EVENT(WIRE_N_DCACHE_WRITE_HIT, "dcache write hit"),
    EVENT(WIRE_N_DCACHE_WRITE_MISS, "dcache write miss")};

static void wait_until_idle(uint32_t cache)
{
    wait_for(cache + SR, SR_BUSYF, 0);
}

static uint32_t read_monitor(uint32_t which)
{
    const struct monitor *monitor = &monitors[which];
    const uint32_t value = REGISTER(monitor->cache + monitor->offset);
    if (!monitor->narrow)
        return value;
    sums[which] += value;
    change(monitor->cache, 0, monitor->enable << 2);
    change(monitor->cache, monitor->enable << 2, 0);
    return sums[which];
}

void start_monitors(void)
{
    change(RCC_AHB1ENR, 0, DCACHE1EN);
    wait_until_idle(ICACHE);
    for (uint32_t i = 0; i < MONITORS; i++)
        change(monitors[i].cache, 0, CR_EN | monitors[i].enable);
    join_monitors(named, MONITORS, read_monitor);
}

void empty_part_caches(void)
{
    change(ICACHE, 0, CR_CACHEINV);
    change(DCACHE, 0, CR_CACHEINV);
    wait_until_idle(ICACHE);
    wait_until_idle(DCACHE);
    barrier();
}
