/* Micro-benchmarks: each repeats one thing `laps` times. What stands around it is the same for any
 * count, so the difference of two runs of one probe is the cost of the laps between them.
 *
 * A room is memory filled with zeros: the sum with what was loaded makes each address wait for the
 * load before it. */
#ifndef TWIN_PROBES_H
#define TWIN_PROBES_H

#include <stdint.h>

/* A dependent load every `stride` bytes of `extent`, in order; in an order no prefetcher follows,
 * for a power of two of them. */
void chase(const void *room, uint32_t extent, uint32_t stride, uint32_t laps);
void chase_shuffled(const void *room, uint32_t extent, uint32_t stride, uint32_t laps);

/* Independent words one after another; `extent` is a multiple of 128. */
void stream_read(const void *room, uint32_t extent, uint32_t laps);
void stream_write(void *room, uint32_t extent, uint32_t laps);

/* Straight code of `extent` bytes, at most SLED_BYTES. */
#define SLED_BYTES 32768
void fetch_code(uint32_t extent, uint32_t laps);

/* The densest sequence of multiply-accumulates there is, in registers, many times. */
void multiply_int8(uint32_t laps);
void multiply_int16(uint32_t laps);
void multiply_float(uint32_t laps);
/* The inner loop of the kernels over 2 x `extent` bytes of int8. */
void dot_int8(const void *room, uint32_t extent, uint32_t laps);

/* Eight branches that are taken; a call through a pointer; the loop alone. */
void branch_taken(uint32_t laps);
void call_nothing(uint32_t laps);
void loop_nothing(uint32_t laps);

void clear_room(void *room, uint32_t extent);

#endif
