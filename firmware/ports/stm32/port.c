/* STM32: a USART, and a pin of the Arduino header as mark. What differs from part to part is in the
 * variant's variant.h and clocks.c, with the reference manual it was read from. */
#include "cortex_m.h"
#include "port_nothing.h"
#include "stm32.h"
#include "variant.h"

#ifdef USART_V1  /* F1, F2, F4 */
#define USART_STATUS REGISTER(USART_BASE + 0x00)
#define USART_READ REGISTER(USART_BASE + 0x04)
#define USART_WRITE REGISTER(USART_BASE + 0x04)
#define USART_BRR REGISTER(USART_BASE + 0x08)
#define USART_CR1 REGISTER(USART_BASE + 0x0c)
#define USART_ENABLE (1u << 13)
#define CLEAR_OVERRUN() ((void)USART_STATUS, (void)USART_READ)
#else
#define USART_CR1 REGISTER(USART_BASE + 0x00)
#define USART_BRR REGISTER(USART_BASE + 0x0c)
#define USART_STATUS REGISTER(USART_BASE + 0x1c)
#define USART_READ REGISTER(USART_BASE + 0x24)
#define USART_WRITE REGISTER(USART_BASE + 0x28)
#define USART_ENABLE 1u
#define CLEAR_OVERRUN() (REGISTER(USART_BASE + 0x20) = STATUS_OVERRUN)
#endif
#define STATUS_OVERRUN (1u << 3)
#define STATUS_RECEIVED (1u << 5)
#define STATUS_SENT (1u << 6)
#define STATUS_EMPTY (1u << 7)
#define CR1_TE (1u << 3)
#define CR1_RE (1u << 2)
#define CR1_RXNEIE (1u << 5)
#define BAUD 115200u

static uint32_t is_model(void)
{
    return VARIANT_IN_QEMU && !has_cycle_counter();  /* every STM32 here has a CYCCNT */
}

static void port_start(void)
{
    start_clocks();
    use_pin(TX_PORT, TX_PIN, PIN_ALTERNATE, UART_FUNCTION);
    use_pin(RX_PORT, RX_PIN, PIN_ALTERNATE, UART_FUNCTION);
    use_pin(MARK_PORT, MARK_PIN, PIN_OUTPUT, 0);
    USART_BRR = (UART_FACTOR * UART_HZ + BAUD / 2) / BAUD;
    USART_CR1 = USART_ENABLE | CR1_TE | CR1_RE | CR1_RXNEIE;
    enable_interrupt(UART_INTERRUPT);
    start_counter();
    enable_caches();
    start_monitors();
}

void port_interrupt(void)
{
    while (USART_STATUS & (STATUS_RECEIVED | STATUS_OVERRUN)) {
        if (USART_STATUS & STATUS_RECEIVED)
            receive_byte((uint8_t)USART_READ);
        if (USART_STATUS & STATUS_OVERRUN)
            CLEAR_OVERRUN();
    }
}

static const struct wire_counter *port_counter(void)
{
    static const struct wire_counter timer = {
        .id = WIRE_N_TIMER, .clock = WIRE_C_TIMER, .bits = 32, .name = "systick"};
    return is_model() ? &timer : clock_counter();
}

static uint32_t port_features(void)
{
    return core_features() | WIRE_F_MARK | MONITOR_FEATURES
           | (is_model() ? WIRE_F_SIMULATED : WIRE_F_COLD | WIRE_F_ENVIRONMENT);
}

static uint32_t port_cpu_hz(void)
{
    return CPU_HZ;
}

static uint32_t byte_came(void)
{
    return USART_STATUS & STATUS_RECEIVED;
}

static void port_idle(void)
{
    sleep_unless(byte_came);
}

static void port_send(uint8_t byte)
{
    while (!(USART_STATUS & STATUS_EMPTY))
        ;
    USART_WRITE = byte;
}

static void port_flush(void)
{
    while (!(USART_STATUS & STATUS_SENT))
        ;
}

static void port_mark(int32_t level)
{
    set_pin(MARK_PORT, MARK_PIN, level);
}

static void port_unique_id(uint8_t id[16])
{
    for (uint32_t i = 0; i < 12 && !is_model(); i++)  /* a model has no such memory */
        id[i] = ((const volatile uint8_t *)UNIQUE_ID)[i];
}

#define port_poll do_nothing
#define port_environment read_part_environment
#define port_core_id read_core_id
#define port_count read_counter
#define port_counter_hz port_cpu_hz
#define port_place_weights copy_weights
#define port_empty_caches empty_part_caches
#define port_mask mask_interrupts
#define port_unmask unmask_interrupts
#define port_events part_events
#define port_select select_part_events
#define port_read read_part_events
#define PORT_EVENTS_AT_ONCE PART_EVENTS_AT_ONCE
#define PORT_NAME VARIANT_NAME
#include "port_table.h"
