/* The line of a drop-in network on Zephyr: the console's UART, polled, and the timing API's counter, which
 * is the core's own where the architecture has one (CONFIG_TIMING_FUNCTIONS). */
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#if defined(CONFIG_TIMING_FUNCTIONS)
#include <zephyr/timing/timing.h>
#endif

#include "twin_network.h"
#include "twin_zephyr.h"

static const struct device *const uart = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

static int32_t next_byte(void)
{
	unsigned char byte;

	return uart_poll_in(uart, &byte) == 0 ? byte : -1;
}

static void send(uint8_t byte)
{
	uart_poll_out(uart, byte);
}

#if defined(CONFIG_TIMING_FUNCTIONS)
static uint32_t count(void)
{
	return (uint32_t)timing_counter_get();
}
#else
static uint32_t count(void)
{
	return k_cycle_get_32();
}
#endif

void twin_zephyr_run(void)
{
	static struct twin_line line = {.read = next_byte, .write = send, .count = count};

#if defined(CONFIG_TIMING_FUNCTIONS)
	timing_init();
	timing_start();
	line.count_hz = (uint32_t)timing_freq_get();
#if defined(CONFIG_CPU_CORTEX_M_HAS_DWT) || defined(CONFIG_RISCV)
	line.counts_cycles = 1; /* the core's own counter, at the core's clock */
	line.cpu_hz = line.count_hz;
#endif
#else
	line.count_hz = (uint32_t)sys_clock_hw_cycles_per_sec();
#endif
	twin_network_run(&line);
}
