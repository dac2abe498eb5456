/* What port.c, flash_cache.c and the variants of the nRF share. */
#ifndef TWIN_NRF_H
#define TWIN_NRF_H

#include "cortex_m.h"

/* By the variant's clocks.c: the core at CPU_HZ once the crystal runs. */
void start_core_clock(void);

/* By flash_cache.c: the cache in front of the flash, and its counters joined to the core's events. */
void start_flash_cache(void);
void empty_flash_cache(void);

#endif
