/* Running the model: warm-up, counters around layers, checks of the output. */
#ifndef TWIN_RUN_H
#define TWIN_RUN_H

#include <stdint.h>

#include "wire.h"

/* Places in the list COUNTERS gives; the port's own events follow. */
enum { COUNTER_CLOCK = 0, COUNTER_CHECKSUM = 1, COUNTER_INTERRUPTS = 2, COUNTER_EVENTS = 3 };

uint32_t counter_total(void);
struct wire_counter describe_counter(uint32_t place);  /* place < counter_total() */

/* WIRE_F_* a configuration needs and the port lacks. */
uint32_t missing_features(const struct wire_config *config);

/* Returns 0, or the offset of the refused field plus 1. Measures the set-up. */
uint32_t configure_runs(const struct wire_config *config, uint64_t *setup_ticks);
uint32_t samples_per_run(void);
uint32_t runs_made(void);
uint32_t runs_mismatched(void);
uint32_t last_checksum(void);

/* Make runs until done, full or asked to stop; returns how many were made. */
uint32_t make_runs(uint32_t first_run, uint32_t runs);

/* One inference on the loaded input, nothing recorded. */
void infer_once(void);

/* Cycles two neighbouring reads of the configured counters are apart. */
void measure_overhead(uint32_t reads, struct wire_overhead_reply *reply);

/* The port's counter, extended to 64 bits: it must be read more often than it wraps. */
uint64_t read_ticks(void);

#endif
