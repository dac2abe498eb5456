/* The line of a drop-in network on Zephyr: the UART chosen as console, polled. The counter is the core's own
 * (Cortex-M: DWT by Zephyr's timing functions; RISC-V: mcycle) where it is seen to move, else Zephyr's
 * system timer. */
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#if defined(CONFIG_TIMING_FUNCTIONS)
#include <zephyr/timing/timing.h>
#endif

#include "twin_network.h"
#include "twin_zephyr.h"

#define WATCHED_US 100000u  /* how long an unknown clock is compared with the system timer's */

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

static uint32_t system_count(void)
{
	return k_cycle_get_32();
}

#if defined(CONFIG_CPU_CORTEX_M_HAS_DWT) && defined(CONFIG_TIMING_FUNCTIONS)
#define CORE_COUNTER 1

static uint32_t core_count(void)
{
	return (uint32_t)timing_counter_get();
}

static void start_core_count(void)
{
	timing_init();
	timing_start();
}

static uint32_t core_count_hz(void)
{
	return (uint32_t)timing_freq_get();
}

/* The ESP32's RISC-V cores have no mcycle, and reading it traps. */
#elif defined(CONFIG_RISCV) && !defined(CONFIG_SOC_SERIES_ESP32C3) && !defined(CONFIG_SOC_ESP32C3) && \
	!defined(CONFIG_SOC_FAMILY_ESPRESSIF_ESP32)
#define CORE_COUNTER 1

static uint32_t core_count(void)
{
	unsigned long cycles;

	__asm__ volatile("csrr %0, mcycle" : "=r"(cycles));
	return (uint32_t)cycles;
}

static void start_core_count(void)
{
}

static uint32_t core_count_hz(void)
{
	const uint32_t start = core_count(), from = system_count();

	k_busy_wait(WATCHED_US);
	const uint32_t cycles = core_count() - start, ticks = system_count() - from;

	return (uint32_t)((uint64_t)cycles * sys_clock_hw_cycles_per_sec() / (ticks ? ticks : 1u));
}
#endif

#if defined(CORE_COUNTER)
/* QEMU's DWT reads zero for ever, and so does one that a debugger's reset left without a clock. */
static int core_count_moves(void)
{
	start_core_count();
	const uint32_t before = core_count();

	for (volatile int i = 0; i < 64; i++) {
	}
	return core_count() != before;
}
#endif

void twin_zephyr_run(void)
{
	static struct twin_line line = {.read = next_byte, .write = send, .count = system_count};

	line.count_hz = (uint32_t)sys_clock_hw_cycles_per_sec();
#if defined(CORE_COUNTER)
	if (core_count_moves()) {
		line.count = core_count;
		line.count_hz = core_count_hz();
		line.counts_cycles = 1;
		line.cpu_hz = line.count_hz;
	}
#endif
#if defined(CONFIG_QEMU_TARGET)  /* MPS boards are silicon, too, and there the counter moves */
	line.simulated = !line.counts_cycles || IS_ENABLED(CONFIG_RISCV);
#endif
	twin_network_run(&line);
}
