/* What Cortex-M cores have in common. Register addresses: Armv6-M, Armv7-M and Armv8-M
 * Architecture Reference Manuals (DDI 0419, DDI 0403, DDI 0553). */
#ifndef TWIN_CORTEX_M_H
#define TWIN_CORTEX_M_H

#include <stdint.h>

#include "port.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define NVIC_ISER(n) REGISTER(0xe000e100 + 4u * (n))
#define SCB_CPUID REGISTER(0xe000ed00)
#define SCB_ICSR REGISTER(0xe000ed04)
#define SCB_VTOR REGISTER(0xe000ed08)
#define SCB_AIRCR REGISTER(0xe000ed0c)
#define SCB_CCR REGISTER(0xe000ed14)
#define SCB_CLIDR REGISTER(0xe000ed78)
#define SCB_CCSIDR REGISTER(0xe000ed80)
#define SCB_CSSELR REGISTER(0xe000ed84)
#define SCB_CPACR REGISTER(0xe000ed88)
#define SCB_DEMCR REGISTER(0xe000edfc)
#define SCB_ICIALLU REGISTER(0xe000ef50)
#define SCB_DCISW REGISTER(0xe000ef60)
#define SCB_DCCISW REGISTER(0xe000ef74)
#define DWT_CTRL REGISTER(0xe0001000)
#define DWT_CYCCNT REGISTER(0xe0001004)
#define DWT_CPICNT_ADDRESS 0xe0001008  /* EXCCNT, SLEEPCNT, LSUCNT, FOLDCNT follow */
#define DWT_LAR REGISTER(0xe0001fb0)
#define PMU_EVCNTR(n) REGISTER(0xe0003000 + 4u * (n))
#define PMU_CCNTR REGISTER(0xe000307c)
#define PMU_EVTYPER(n) REGISTER(0xe0003400 + 4u * (n))
#define PMU_CNTENSET REGISTER(0xe0003c00)
#define PMU_TYPE REGISTER(0xe0003e00)
#define PMU_CTRL REGISTER(0xe0003e04)

#define CCR_DC (1u << 16)
#define CCR_IC (1u << 17)

static inline void barrier(void)
{
    __asm volatile("dsb\n\tisb" ::: "memory");
}

static inline uint32_t read_core_id(void)
{
    return SCB_CPUID;
}

static inline void enable_interrupt(uint32_t number)
{
    NVIC_ISER(number / 32u) = 1u << number % 32u;
}

/* Functions of a port, as every Cortex-M has them: counter.c, cache.c, startup.c. */

/* Finds a cycle counter by enabling it and seeing it move; else takes SysTick. */
void start_counter(void);
uint32_t has_cycle_counter(void);
uint32_t read_counter(void);
const struct wire_counter *clock_counter(void);

/* Further counters: the PMU of Armv8.1-M, else DWT's five counters of 8 bits. */
#if defined(__ARM_FEATURE_MVE)
#define CORE_EVENTS_AT_ONCE 4
#define CORE_EVENT_FEATURE WIRE_F_PMU
#else
#define CORE_EVENTS_AT_ONCE 5
#define CORE_EVENT_FEATURE WIRE_F_DWT8
#endif
void start_core_events(void);
uint32_t core_events(const struct wire_counter **list);
uint32_t select_core_events(const uint16_t *ids, uint32_t count);
void read_core_events(uint32_t *values);
uint32_t core_features(void);  /* what of WIRE_F_* the core itself brings */

void enable_caches(void);
void clean_invalidate_caches(void);
uint32_t has_caches(void);

uint32_t mask_interrupts(void);
void unmask_interrupts(uint32_t state);
void copy_weights(void);

/* Sleep unless `waits` says that there is a byte: with interrupts masked, so that one which comes
 * in between still wakes the core. */
void sleep_unless(uint32_t (*waits)(void));

/* Written by the port: any external interrupt ends up here. */
void port_interrupt(void);

#endif
