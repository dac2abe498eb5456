/* QEMU's RISC-V `virt` machine, 32 bits: a 16550 UART, cycle and instruction counters.
 *
 * Addresses: QEMU hw/riscv/virt.c; UART: National PC16550D; counters: RISC-V privileged
 * specification; PLIC: RISC-V PLIC specification. */
#include "port_nothing.h"
#include "riscv.h"

#define BYTE(address) (*(volatile uint8_t *)(uintptr_t)(address))

#define UART_DATA BYTE(0x10000000)
#define UART_IER BYTE(0x10000001)
#define UART_LSR BYTE(0x10000005)
#define LSR_READY 1u
#define LSR_EMPTY 0x20u
#define UART_INTERRUPT 10u
#define PLIC_PRIORITY(n) REGISTER(0x0c000000 + 4u * (n))
#define PLIC_ENABLE REGISTER(0x0c002000)
#define PLIC_CLAIM REGISTER(0x0c200004)
#define VIRTUAL_HZ 1000000000u  /* at -icount shift=0 an instruction takes one nanosecond */

static void port_start(void)
{
    UART_IER = 1;
    PLIC_PRIORITY(UART_INTERRUPT) = 1;
    PLIC_ENABLE = 1u << UART_INTERRUPT;
    __asm volatile("csrs mie, %0" :: "r"(0x800));  /* wakes wfi; mstatus.MIE stays off */
}

static uint32_t port_features(void)
{
    return core_features() | WIRE_F_SIMULATED;
}

static uint32_t port_cpu_hz(void)
{
    return VIRTUAL_HZ;
}

static void port_poll(void)
{
    while (UART_LSR & LSR_READY)
        receive_byte(UART_DATA);
}

static void port_idle(void)
{
    if (!(UART_LSR & LSR_READY))
        __asm volatile("wfi");
    PLIC_CLAIM = PLIC_CLAIM;  /* claim and complete */
}

static void port_send(uint8_t byte)
{
    while (!(UART_LSR & LSR_EMPTY))
        ;
    UART_DATA = byte;
}

static void port_flush(void)
{
    while (!(UART_LSR & LSR_EMPTY))
        ;
}

#define PORT_EVENTS_AT_ONCE CORE_EVENTS_AT_ONCE
#define port_count read_counter
#define port_counter clock_counter
#define port_events core_events
#define port_select select_core_events
#define port_read read_core_events
#define port_core_id read_core_id
#define port_counter_hz port_cpu_hz
#define port_place_weights copy_weights
#define port_empty_caches do_nothing
#define port_mask mask_nothing  /* none are ever taken */
#define port_unmask unmask_nothing
#define port_mark mark_nothing
#define port_environment no_environment
#define port_unique_id no_unique_id
#define PORT_NAME "riscv_virt"
#include "port_table.h"
