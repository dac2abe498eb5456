/* What RISC-V ports share. */
#ifndef TWIN_RISCV_H
#define TWIN_RISCV_H

#include "port.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

void copy_weights(void);

/* Counters every core has: cycles, and instructions as the one event (counter.c). */
#define CORE_EVENTS_AT_ONCE 1
void start_counter(void);
uint32_t read_counter(void);
const struct wire_counter *clock_counter(void);
uint32_t core_events(const struct wire_counter **list);
uint32_t select_core_events(const uint16_t *ids, uint32_t count);
void read_core_events(uint32_t *values);
uint32_t core_features(void);  /* what of WIRE_F_* the core itself brings */
uint32_t read_core_id(void);

/* Caches of these cores are their vendors' own. */
void enable_caches(void);
void clean_invalidate_caches(void);

uint32_t mask_interrupts(void);
void unmask_interrupts(uint32_t state);

#endif
