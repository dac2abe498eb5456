/* CRC-32 (IEEE 802.3, reflected), as zlib computes it. */
#ifndef TWIN_CHECKSUM_H
#define TWIN_CHECKSUM_H

#include <stdint.h>

uint32_t checksum(const void *bytes, uint32_t count);

#endif
