/* A board inside the Unicorn emulator: a console of three words, and a counter the emulator feeds.
 * README.md states what the emulator has to provide. */
#include "cortex_m.h"
#include "port_nothing.h"

#define CONSOLE_DATA REGISTER(0x40004000)    /* read: next byte; write: send one */
#define CONSOLE_WAITING REGISTER(0x40004004) /* bytes that can be read */
#define CONSOLE_HZ REGISTER(0x40004008)      /* clock of the board it stands for, 0: not known */
#define CONSOLE_COLD REGISTER(0x4000400c)    /* write: empty the caches of the model */
#define CONSOLE_MARK REGISTER(0x40004010)    /* write: the level of the marking pin */

static void port_start(void)
{
    start_counter();
}

void port_interrupt(void)
{
}

static uint32_t port_features(void)
{
    return core_features() | WIRE_F_COLD | WIRE_F_MARK | WIRE_F_SIMULATED;
}

static uint32_t port_cpu_hz(void)
{
    return CONSOLE_HZ;
}

static uint32_t byte_came(void)
{
    return CONSOLE_WAITING;
}

static void port_poll(void)
{
    for (uint32_t waiting = CONSOLE_WAITING; waiting > 0; waiting--)
        receive_byte((uint8_t)CONSOLE_DATA);
}

static void port_idle(void)
{
    sleep_unless(byte_came);
}

static void port_send(uint8_t byte)
{
    CONSOLE_DATA = byte;
}

static void port_empty_caches(void)
{
    CONSOLE_COLD = 1;
}

static void port_mark(int32_t level)
{
    static uint32_t pin;
    pin = level < 0 ? !pin : level > 0;
    CONSOLE_MARK = pin;
}

#define port_counter_hz port_cpu_hz
#define port_flush do_nothing
#define port_environment no_environment
#define port_unique_id no_unique_id
#define port_core_id read_core_id
#define port_count read_counter
#define port_counter clock_counter
#define port_place_weights copy_weights
#define port_mask mask_interrupts
#define port_unmask unmask_interrupts
#define port_events core_events
#define port_select select_core_events
#define port_read read_core_events
#define PORT_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
#define PORT_NAME "unicorn"
#include "port_table.h"
