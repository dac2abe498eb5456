/* A port whose board is somebody else's project: bytes, counter and caches by callbacks. */
#include "port_nothing.h"
#include "twin_network.h"

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define IS_CORTEX_M 1
#if __ARM_ARCH == 7 || defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
#define HAS_CYCCNT 1
#endif
#endif
#define CORE_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

static const struct twin_line *line;

void twin_network_run(const struct twin_line *given)
{
    line = given;
    run_firmware();
}

static void port_start(void)
{
#ifdef HAS_CYCCNT  /* Armv7-M and Armv8-M Architecture Reference Manuals: DEMCR, DWT_LAR, DWT_CTRL */
    CORE_REGISTER(0xe000edfc) |= 1u << 24;
    CORE_REGISTER(0xe0001fb0) = 0xc5acce55u;
    CORE_REGISTER(0xe0001000) |= 1u;
#endif
}

static uint32_t port_count(void)
{
#ifdef HAS_CYCCNT
    if (!line->count)
        return CORE_REGISTER(0xe0001004);
#endif
    return line->count ? line->count() : 0;
}

static uint32_t counts_cycles(void)
{
#ifdef HAS_CYCCNT
    if (!line->count)
        return 1;
#endif
    return line->counts_cycles;
}

static const struct wire_counter *port_counter(void)
{
    static const struct wire_counter counters[] = {
        {.id = WIRE_N_TIMER, .clock = WIRE_C_TIMER, .bits = 32, .name = "timer"},
        {.id = WIRE_N_CYCLES, .clock = WIRE_C_CPU, .bits = 32, .name = "cycles"}};
    return &counters[counts_cycles()];
}

static uint32_t port_counter_hz(void)
{
    const uint32_t hz = line->count ? line->count_hz : line->cpu_hz;
    return hz ? hz : 1000000u;  /* some time has to be told */
}

static uint32_t port_features(void)
{
    uint32_t features = counts_cycles() ? WIRE_F_CYCLES : WIRE_F_TIMER;
#ifdef IS_CORTEX_M
    features |= WIRE_F_MASK;
#endif
    features |= line->simulated ? WIRE_F_SIMULATED : 0;
    return features | (line->empty_caches ? WIRE_F_COLD : 0);
}

static uint32_t port_cpu_hz(void)
{
    return line->cpu_hz;
}

static void port_poll(void)
{
    int32_t byte;
    while ((byte = line->read()) >= 0)
        receive_byte((uint8_t)byte);
}

static void port_send(uint8_t byte)
{
    line->write(byte);
}

static void port_flush(void)
{
    if (line->flush)
        line->flush();
}

static void port_empty_caches(void)
{
    if (line->empty_caches)
        line->empty_caches();
}

#ifdef IS_CORTEX_M
static uint32_t port_mask(void)
{
    uint32_t state;
    __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(state) :: "memory");
    return state;
}

static void port_unmask(uint32_t state)
{
    __asm volatile("msr primask, %0" :: "r"(state) : "memory");
}

static uint32_t port_core_id(void)
{
    return CORE_REGISTER(0xe000ed00);
}
#else
#define port_mask mask_nothing
#define port_unmask unmask_nothing
#define port_core_id no_number
#endif

#define PORT_EVENTS_AT_ONCE 0
#define port_idle do_nothing
#define port_place_weights do_nothing  /* they lie where the project links them */
#define port_mark mark_nothing
#define port_environment no_environment
#define port_unique_id no_unique_id
#define port_events no_events
#define port_select select_nothing
#define port_read read_nothing
#define PORT_NAME "dropin"
#include "port_table.h"
