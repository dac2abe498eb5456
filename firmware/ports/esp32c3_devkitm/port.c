/* Espressif ESP32-C3-DevKitM: UART0 as the ROM left its pins, 160 MHz from the PLL, the counter of the
 * core, and the flash cache's counters of both windows. Registers: ports/REGISTERS.md. */
#include "port_nothing.h"
#include "riscv.h"

#define UART 0x60000000u
#define UART_STATUS REGISTER(UART + 0x1c)
#define UART_CLKDIV REGISTER(UART + 0x14)
#define UART_CLK_CONF REGISTER(UART + 0x78)
#define UART_FSM REGISTER(UART + 0x6c)
#define CPU_PER_CONF REGISTER(0x600c0008)
#define SYSCLK_CONF REGISTER(0x600c0058)
#define CACHE 0x600c4000u
#define MARK_PIN 2u
#define CPU_HZ 160000000u
#define XTAL_HZ 40000000u
#define WATCHDOG_KEY 0x50d83aa1u

static void stop_watchdogs(void)
{
    REGISTER(0x6001f064) = WATCHDOG_KEY;          /* TIMG0 */
    REGISTER(0x6001f048) = 0;
    REGISTER(0x600080a8) = WATCHDOG_KEY;          /* RTC */
    REGISTER(0x60008090) = 0;
    REGISTER(0x600080b0) = 0x8f1d312au;           /* super watchdog: fed by itself */
    REGISTER(0x600080ac) |= 1u << 31;
}

static void port_start(void)
{
    stop_watchdogs();
    CPU_PER_CONF = (CPU_PER_CONF & ~7u) | 1u << 2 | 1u;      /* PLL of 480 MHz; 160 MHz of it */
    SYSCLK_CONF = (SYSCLK_CONF & ~(3u << 10 | 0x3ffu)) | 1u << 10;
    UART_CLK_CONF = 3u << 20 | 1u << 22 | 1u << 24 | 1u << 25;  /* the crystal, undivided */
    UART_CLKDIV = XTAL_HZ / 115200u | (XTAL_HZ % 115200u * 16u / 115200u) << 20;
    REGISTER(0x60004554 + 4u * MARK_PIN) = 128u;  /* GPIO: the output register's own bit */
    REGISTER(0x60004024) = 1u << MARK_PIN;
    __asm volatile("csrw 0x7e0, %0\n\tcsrw 0x7e1, %1" :: "r"(1), "r"(1));  /* cycles; on */
}

static uint32_t port_features(void)
{
    return WIRE_F_CYCLES | WIRE_F_COLD | WIRE_F_MARK | WIRE_F_CACHE_MONITOR | WIRE_F_ENVIRONMENT;
}

static uint32_t port_cpu_hz(void)
{
    return CPU_HZ;
}

static void port_poll(void)
{
    while (UART_STATUS & 0x3ffu)
        receive_byte((uint8_t)REGISTER(UART));
}

static void port_send(uint8_t byte)
{
    while ((UART_STATUS >> 16 & 0x3ffu) > 100u)
        ;
    REGISTER(UART) = byte;
}

static void port_flush(void)
{
    while ((UART_STATUS >> 16 & 0x3ffu) || (UART_FSM >> 4 & 15u))
        ;
}

static uint32_t port_count(void)
{
    uint32_t value;
    __asm volatile("csrr %0, 0x7e2" : "=r"(value));
    return value;
}

static const struct wire_counter *port_counter(void)
{
    static const struct wire_counter counter = {
        .id = WIRE_N_CYCLES, .clock = WIRE_C_CPU, .bits = 32, .name = "mpccr"};
    return &counter;
}

static uint8_t chosen[4];
static uint32_t chosen_count;

static uint32_t port_events(const struct wire_counter **list)
{
#define EVENT(number, label) \
    {.id = (number), .clock = WIRE_C_EVENTS, .bits = 32, .name = label}
    static const struct wire_counter events[] = {
        EVENT(WIRE_N_ICACHE_HIT, "ibus hit"), EVENT(WIRE_N_ICACHE_MISS, "ibus miss"),
        EVENT(WIRE_N_DCACHE_READ_HIT, "dbus hit"), EVENT(WIRE_N_DCACHE_READ_MISS, "dbus miss")};
    *list = events;
    return 4;
}

static uint32_t port_select(const uint16_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        chosen[i] = (uint8_t)(ids[i] - WIRE_N_ICACHE_HIT);
    chosen_count = count;
    return 1;
}

static void port_read(uint32_t *values)
{
    for (uint32_t i = 0; i < chosen_count; i++) {
        const uint32_t pair = CACHE + 0x68u + (chosen[i] & 2u ? 8u : 0);  /* misses, accesses */
        const uint32_t misses = REGISTER(pair);
        values[i] = chosen[i] & 1u ? misses : REGISTER(pair + 4u) - misses;
    }
}

static void port_empty_caches(void)
{
    static const uint32_t windows[] = {0x3c000000u, 0x42000000u};
    for (uint32_t i = 0; i < 2; i++) {
        REGISTER(CACHE + 0x2c) = windows[i];
        REGISTER(CACHE + 0x30) = 0x400000u;
        REGISTER(CACHE + 0x28) = 1;
        while (!(REGISTER(CACHE + 0x28) & 2u))
            ;
    }
}

static void port_mark(int32_t level)
{
    const uint32_t now = REGISTER(0x60004004) >> MARK_PIN & 1u;
    REGISTER((level < 0 ? !now : level > 0) ? 0x60004008 : 0x6000400c) = 1u << MARK_PIN;
}

static void port_environment(struct wire_environment_reply *reply)
{
    reply->clock_source = 1;
}

#define PORT_EVENTS_AT_ONCE 4
#define port_counter_hz port_cpu_hz
#define port_place_weights copy_weights
#define port_idle do_nothing
#define port_mask mask_nothing  /* none are ever taken */
#define port_unmask unmask_nothing
#define port_unique_id no_unique_id
#define port_core_id no_number
#define PORT_NAME "esp32c3_devkitm"
#include "port_table.h"
