/* Nordic nRF52 and nRF53: a UARTE, which moves bytes by its own DMA, the cache in front of the flash
 * with its counters, and a pin of the Arduino header as mark. What differs is in variant.h.
 * Registers: ports/REGISTERS.md. */
#include "cortex_m.h"
#include "monitors.h"
#include "nrf.h"
#include "port_nothing.h"
#include "variant.h"

#define UARTE(offset) REGISTER(UARTE_BASE + (offset))
#define START_RX UARTE(0x000)
#define START_TX UARTE(0x008)
#define END_RX UARTE(0x110)
#define END_TX UARTE(0x120)
#define ERROR UARTE(0x124)
#define SHORTS UARTE(0x200)
#define INTENSET UARTE(0x304)
#define ERROR_SOURCE UARTE(0x480)
#define ENABLE UARTE(0x500)
#define BAUD_RATE UARTE(0x524)
#define CLOCK_EVENT REGISTER(CLOCK_BASE + 0x100)

/* The DMA reads and writes RAM alone. */
static volatile uint8_t received, sent;

static void start_uart(void)
{
    REGISTER(P0 + PIN_OUTSET) = 1u << TX_PIN;
    REGISTER(P0 + PIN_DIRSET) = 1u << TX_PIN;
    UARTE(0x50c) = TX_PIN;                        /* PSEL.TXD, port 0, connected */
    UARTE(0x514) = RX_PIN;                        /* PSEL.RXD */
    BAUD_RATE = 0x01d60000u;                      /* 115200 */
    ENABLE = 8;
    UARTE(0x534) = (uint32_t)(uintptr_t)&received;
    UARTE(0x538) = 1;                             /* RXD.MAXCNT: a byte, then the next */
    UARTE(0x544) = (uint32_t)(uintptr_t)&sent;
    UARTE(0x548) = 1;
    SHORTS = 1u << 5;                             /* ENDRX starts RX */
    INTENSET = 1u << 4 | 1u << 9;                 /* ENDRX, ERROR */
    START_RX = 1;
    enable_interrupt(UARTE_INTERRUPT);
}

static void port_start(void)
{
    CLOCK_EVENT = 0;
    REGISTER(CLOCK_BASE) = 1;                     /* HFCLKSTART: the crystal */
    while (!CLOCK_EVENT)
        ;
    start_core_clock();
    REGISTER(MARK_PORT + PIN_DIRSET) = 1u << MARK_PIN;
    start_uart();
    start_counter();
    start_flash_cache();
}

void port_interrupt(void)
{
    while (END_RX) {
        END_RX = 0;
        (void)END_RX;                             /* it has arrived */
        receive_byte(received);
    }
    if (ERROR) {
        ERROR_SOURCE = ERROR_SOURCE;              /* ones clear */
        ERROR = 0;
        (void)ERROR;
    }
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
    return END_RX;
}

static void port_idle(void)
{
    sleep_unless(byte_came);
}

static void port_send(uint8_t byte)
{
    sent = byte;
    END_TX = 0;
    START_TX = 1;
    while (!END_TX)
        ;
}

static void port_mark(int32_t level)
{
    const uint32_t now = REGISTER(MARK_PORT + PIN_OUT) >> MARK_PIN & 1u;
    const uint32_t wanted = level < 0 ? !now : level > 0;
    REGISTER(MARK_PORT + (wanted ? PIN_OUTSET : PIN_OUTCLR)) = 1u << MARK_PIN;
}

static void port_environment(struct wire_environment_reply *reply)
{
    reply->clock_source = 1;
#ifdef TEMP_BASE
    REGISTER(TEMP_BASE + 0x100) = 0;              /* EVENTS_DATARDY */
    REGISTER(TEMP_BASE) = 1;                      /* TASKS_START; 36 us */
    for (uint32_t left = 10000; left && reply->temperature_mc == WIRE_UNKNOWN; left--)
        if (REGISTER(TEMP_BASE + 0x100))
            reply->temperature_mc = (int32_t)REGISTER(TEMP_BASE + 0x508) * 250;
    REGISTER(TEMP_BASE + 0x004) = 1;              /* TASKS_STOP: it draws no current during runs */
#endif
}

static void port_unique_id(uint8_t id[16])
{
    for (uint32_t i = 0; i < 8; i++)
        id[i] = ((const volatile uint8_t *)DEVICE_ID)[i];
}

#define PORT_EVENTS_AT_ONCE WIRE_EVENTS_MAX
#define port_poll do_nothing
#define port_flush do_nothing  /* a byte is sent when it has left */
#define port_core_id read_core_id
#define port_count read_counter
#define port_counter clock_counter
#define port_counter_hz port_cpu_hz
#define port_place_weights copy_weights
#define port_empty_caches empty_flash_cache
#define port_mask mask_interrupts
#define port_unmask unmask_interrupts
#define port_events part_events
#define port_select select_part_events
#define port_read read_part_events
#define PORT_NAME VARIANT_NAME
#include "port_table.h"
