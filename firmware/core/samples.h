/* Samples the board keeps until the host has them: a ring that refuses rather than overwrites. */
#ifndef TWIN_SAMPLES_H
#define TWIN_SAMPLES_H

#include <stdint.h>

#include "wire.h"

#ifndef SAMPLE_CAPACITY
#define SAMPLE_CAPACITY 1024u  /* a power of two; 16 bytes each */
#endif

void clear_samples(void);
uint32_t free_samples(void);
void add_sample(const struct wire_sample *sample);
uint32_t first_sample(void);   /* number of the oldest kept */
uint32_t next_sample(void);    /* number of the next to come */
void forget_samples(uint32_t before);
const struct wire_sample *sample_at(uint32_t number);

#endif
