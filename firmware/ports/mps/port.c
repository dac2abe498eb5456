/* Arm MPS2 and MPS3 FPGA images, and their QEMU models: CMSDK UART and timer.
 *
 * Registers: Cortex-M System Design Kit TRM (DDI 0479), APB UART and APB timer. Addresses, clocks
 * and interrupts: the image's application note, in variant.h. */
#include "cortex_m.h"
#include "port_nothing.h"
#include "variant.h"

#define UART_DATA REGISTER(UART_BASE + 0x00)
#define UART_STATE REGISTER(UART_BASE + 0x04)
#define UART_CTRL REGISTER(UART_BASE + 0x08)
#define UART_INTCLEAR REGISTER(UART_BASE + 0x0c)
#define UART_BAUDDIV REGISTER(UART_BASE + 0x10)
#ifdef SYSTEM_COUNTER_BASE  /* SSE-300 system counter (Arm 101773): counts up, 64 bits */
#define START_TIMER() (REGISTER(SYSTEM_COUNTER_BASE) = 1u)
#define TIMER_TICKS REGISTER(SYSTEM_COUNTER_BASE + 0x08)
#define TIMER_NAME "system counter"
#else                       /* CMSDK timer: counts down, 32 bits */
#define START_TIMER() \
    (REGISTER(TIMER_BASE + 0x08) = REGISTER(TIMER_BASE + 0x04) = 0xffffffffu, \
     REGISTER(TIMER_BASE) = 1u)
#define TIMER_TICKS (0xffffffffu - REGISTER(TIMER_BASE + 0x04))
#define TIMER_NAME "cmsdk timer"
#endif

#define STATE_TX_FULL 1u
#define STATE_RX_FULL 2u
#define INT_RX 2u

static void port_start(void)
{
    UART_BAUDDIV = PERIPHERAL_HZ / 115200u;
    UART_CTRL = 1u | 2u | 8u;  /* transmit, receive, interrupt on receive */
    START_TIMER();
    start_counter();
    if (!has_cycle_counter())
        SYST_CSR = 0;  /* the timer counts instead; a wrap's handler would count itself, too */
    enable_caches();
    enable_interrupt(UART_RX_INTERRUPT);
}

void port_interrupt(void)
{
    UART_INTCLEAR = INT_RX;  /* before draining: a byte that comes meanwhile asks again */
    while (UART_STATE & STATE_RX_FULL)
        receive_byte((uint8_t)UART_DATA);
}

/* QEMU's DWT reads zero: then the 32-bit timer stands in, exact under -icount. */
static uint32_t port_count(void)
{
    return has_cycle_counter() ? read_counter() : TIMER_TICKS;
}

static const struct wire_counter *port_counter(void)
{
    static const struct wire_counter timer = {
        .id = WIRE_N_TIMER, .clock = WIRE_C_TIMER, .bits = 32, .name = TIMER_NAME};
    return has_cycle_counter() ? clock_counter() : &timer;
}

static uint32_t port_counter_hz(void)
{
    return has_cycle_counter() ? CPU_HZ : TIMER_HZ;
}

static uint32_t port_features(void)
{
    /* The FPGA images have a DWT that counts; their model in QEMU does not. */
    return core_features() | (has_cycle_counter() ? 0 : WIRE_F_SIMULATED);
}

static uint32_t port_cpu_hz(void)
{
    return CPU_HZ;
}

static uint32_t byte_came(void)
{
    return UART_STATE & STATE_RX_FULL;
}

static void port_idle(void)
{
    sleep_unless(byte_came);
}

static void port_send(uint8_t byte)
{
    while (UART_STATE & STATE_TX_FULL)
        ;
    UART_DATA = byte;
}

static void port_flush(void)
{
    while (UART_STATE & STATE_TX_FULL)
        ;
}

#define port_poll do_nothing
#define port_mark mark_nothing
#define port_environment no_environment
#define port_unique_id no_unique_id
#define port_core_id read_core_id
#define port_place_weights copy_weights
#define port_empty_caches clean_invalidate_caches
#define port_mask mask_interrupts
#define port_unmask unmask_interrupts
#define port_events core_events
#define port_select select_core_events
#define port_read read_core_events
#define PORT_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
#define PORT_NAME VARIANT_NAME
#include "port_table.h"
