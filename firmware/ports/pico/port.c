/* Raspberry Pi Pico and Pico 2 (RP2040, RP2350): UART0 on GP0 and GP1, mark on GP2, and the XIP cache
 * with its two counters. What differs is in variant.h, with where it was read. */
#include "cortex_m.h"
#include "port_nothing.h"
#include "variant.h"

#define CLEAR_BITS 0x3000u      /* RP2040 datasheet 2.1.2: alias of a register that clears bits */
#define UART_FR REGISTER(UART + 0x18)  /* a PL011: RP2040 datasheet 4.2 */
#define FR_RX_EMPTY (1u << 4)
#define FR_TX_FULL (1u << 5)
#define FR_BUSY (1u << 3)
#define GPIO_CTRL(n) REGISTER(IO_BANK0 + 4u + 8u * (n))
#define MARK_PIN 2u
#define RATE ((4u * CPU_HZ + 57600u) / 115200u)  /* of the UART: in 64ths of a sixteenth */

void start_clocks(void);  /* clocks.c */
void flush_xip(void);     /* boot.c, as is the next */
void connect_pads(void);

static void port_start(void)
{
    const uint32_t used = RESET_BITS;             /* IO_BANK0, PADS_BANK0, UART0 */
    start_clocks();
    REGISTER(RESETS + CLEAR_BITS) = used;
    while ((REGISTER(RESETS + 0x08) & used) != used)
        ;
    GPIO_CTRL(0) = GPIO_CTRL(1) = 2;              /* UART */
    GPIO_CTRL(MARK_PIN) = 5;                      /* SIO */
    connect_pads();
    REGISTER(SIO_OE_SET) = 1u << MARK_PIN;
    REGISTER(UART + 0x24) = RATE >> 6;
    REGISTER(UART + 0x28) = RATE & 63u;
    REGISTER(UART + 0x2c) = 0x70;                 /* 8 bits, FIFO */
    REGISTER(UART + 0x38) = 1u << 4 | 1u << 6;    /* interrupts: received, received and quiet */
    REGISTER(UART + 0x30) = 0x301;
    enable_interrupt(UART_INTERRUPT);
    start_counter();
}

void port_interrupt(void)
{
    REGISTER(UART + 0x44) = 1u << 4 | 1u << 6;    /* before draining */
    while (!(UART_FR & FR_RX_EMPTY))
        receive_byte((uint8_t)REGISTER(UART));
}

static uint32_t port_features(void)
{
    return core_features() | WIRE_F_COLD | WIRE_F_MARK | WIRE_F_CACHE_MONITOR
           | WIRE_F_ENVIRONMENT;
}

static uint32_t port_cpu_hz(void)
{
    return CPU_HZ;
}

static uint32_t byte_came(void)
{
    return !(UART_FR & FR_RX_EMPTY);
}

static void port_idle(void)
{
    sleep_unless(byte_came);
}

static void port_send(uint8_t byte)
{
    while (UART_FR & FR_TX_FULL)
        ;
    REGISTER(UART) = byte;
}

static void port_flush(void)
{
    while (UART_FR & FR_BUSY)
        ;
}

/* Counts stop at 2^32 - 1 and are cleared by writing: every reading takes them over. */
static uint8_t chosen[2];
static uint32_t chosen_count, sums[2];

static uint32_t port_events(const struct wire_counter **list)
{
    static const struct wire_counter events[] = {
        {.id = WIRE_N_XIP_HIT, .clock = WIRE_C_EVENTS, .bits = 32, .name = "xip hit"},
        {.id = WIRE_N_XIP_ACCESS, .clock = WIRE_C_EVENTS, .bits = 32, .name = "xip access"}};
    *list = events;
    return 2;
}

static uint32_t port_select(const uint16_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        chosen[i] = ids[i] == WIRE_N_XIP_ACCESS;
    chosen_count = count;
    return 1;
}

static void port_read(uint32_t *values)
{
    for (uint32_t i = 0; i < 2; i++) {
        sums[i] += REGISTER(XIP + 0x0c + 4u * i);
        REGISTER(XIP + 0x0c + 4u * i) = 0;
    }
    for (uint32_t i = 0; i < chosen_count; i++)
        values[i] = sums[chosen[i]];
}

static void port_empty_caches(void)
{
    flush_xip();
    barrier();
}

static void port_mark(int32_t level)
{
    REGISTER(level < 0 ? SIO_XOR : level ? SIO_SET : SIO_CLEAR) = 1u << MARK_PIN;
}

static void port_environment(struct wire_environment_reply *reply)
{
    reply->clock_source = 1;  /* the crystal; the ADC and its sensor would want the USB PLL */
}

#define PORT_EVENTS_AT_ONCE 2
#define port_poll do_nothing
#define port_unique_id no_unique_id
#define port_core_id read_core_id
#define port_count read_counter
#define port_counter clock_counter
#define port_counter_hz port_cpu_hz
#define port_place_weights copy_weights
#define port_mask mask_interrupts
#define port_unmask unmask_interrupts
#define PORT_NAME VARIANT_NAME
#include "port_table.h"
