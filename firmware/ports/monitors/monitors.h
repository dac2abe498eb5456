/* Counters of a part's own, of its caches, in one list with the events of the core. */
#ifndef TWIN_MONITORS_H
#define TWIN_MONITORS_H

#include "cortex_m.h"

#define MONITORS_MOST 6u

/* `own` are the part's, `read` gives one of them by its place: each runs on, in 32 bits. */
void join_monitors(const struct wire_counter *own, uint32_t count, uint32_t (*read)(uint32_t place));

/* As a port's table has them. */
uint32_t part_events(const struct wire_counter **list);
uint32_t select_part_events(const uint16_t *ids, uint32_t count);
void read_part_events(uint32_t *values);

#endif
