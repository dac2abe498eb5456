/* Any Cortex-M or RISC-V core, through its debug probe: bytes pass in memory that the probe reads and writes while
 * the core runs (SEGGER's RTT layout, which OpenOCD and pyOCD serve as a TCP port). Clocks are those
 * of the CMSIS `SystemInit` linked in, or of reset. */
#include "debug_core.h"
#include "port_nothing.h"
#if __has_include("variant.h")
#include "variant.h"
#else
#define VARIANT_NAME "rtt"
#define VARIANT_FEATURES 0
#endif

#define BUFFER_BYTES 1024u

/* Layout: SEGGER RTT, "RTT Control Block", one buffer up and one down. */
struct ring {
    const char *name;
    volatile uint8_t *bytes;
    uint32_t size;
    volatile uint32_t written, taken;  /* places: next byte to write, to take */
    uint32_t flags;
};

struct control {
    char id[16];
    int32_t up_count, down_count;
    struct ring up, down;
};

static volatile uint8_t up_bytes[BUFFER_BYTES], down_bytes[BUFFER_BYTES];
extern struct control rtt_control;
struct control rtt_control;

/* A vendor's system_*.c defines it; 0: the clock is not known. */
__attribute__((weak)) uint32_t SystemCoreClock;

static void port_start(void)
{
    static const char id[16] = "SEGGER RTT";
    rtt_control.up_count = rtt_control.down_count = 1;
    rtt_control.up = (struct ring){"twin", up_bytes, BUFFER_BYTES, 0, 0, 0};
    rtt_control.down = (struct ring){"twin", down_bytes, BUFFER_BYTES, 0, 0, 0};
    for (uint32_t i = sizeof id; i > 0; i--)  /* backwards, last: a probe looks for the whole text */
        ((volatile char *)rtt_control.id)[i - 1] = id[i - 1];
    start_counter();
    enable_caches();
}

void port_interrupt(void)
{
}

/* A board may have caches that are not the core's. */
void empty_part_caches(void);

__attribute__((weak)) void empty_part_caches(void)
{
    clean_invalidate_caches();
}

static uint32_t port_features(void)
{
    return core_features() | VARIANT_FEATURES;
}

static uint32_t port_cpu_hz(void)
{
    return SystemCoreClock;
}

static uint32_t port_counter_hz(void)
{
    return SystemCoreClock ? SystemCoreClock : 1000000u;  /* some time has to be told */
}

static void port_poll(void)
{
    struct ring *ring = &rtt_control.down;
    while (ring->taken != ring->written) {
        receive_byte(ring->bytes[ring->taken]);
        ring->taken = ring->taken + 1 == BUFFER_BYTES ? 0 : ring->taken + 1;
    }
}

static void port_send(uint8_t byte)
{
    struct ring *ring = &rtt_control.up;
    const uint32_t next = ring->written + 1 == BUFFER_BYTES ? 0 : ring->written + 1;
    while (next == ring->taken)
        ;
    ring->bytes[ring->written] = byte;
    ring->written = next;
}

static void port_flush(void)
{
    while (rtt_control.up.taken != rtt_control.up.written)
        ;
}

#define port_idle do_nothing  /* a probe wakes nobody */
#define port_mark mark_nothing
#define port_environment no_environment
#define port_unique_id no_unique_id
#define port_core_id read_core_id
#define port_count read_counter
#define port_counter clock_counter
#define port_place_weights copy_weights
#define port_empty_caches empty_part_caches
#define port_mask mask_interrupts
#define port_unmask unmask_interrupts
#define port_events core_events
#define port_select select_core_events
#define port_read read_core_events
#define PORT_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
#define PORT_NAME VARIANT_NAME
#include "port_table.h"
