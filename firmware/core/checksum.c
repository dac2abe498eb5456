#include "checksum.h"

/* Remainders of the sixteen values of half a byte: 64 bytes of table, two steps a byte. */
static const uint32_t remainders[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

uint32_t checksum(const void *bytes, uint32_t count)
{
    const uint8_t *byte = bytes;
    uint32_t crc = 0xffffffffu;
    for (; count > 0; count--) {
        crc ^= *byte++;
        crc = crc >> 4 ^ remainders[crc & 15u];
        crc = crc >> 4 ^ remainders[crc & 15u];
    }
    return ~crc;
}
