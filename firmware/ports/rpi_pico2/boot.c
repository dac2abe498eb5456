/* The block by which the RP2350's boot ROM knows an image: an executable of the secure Arm cores, whose
 * vector table is ours (Pico SDK, boot/picobin.h). The ROM has set the flash interface up by then;
 * how fast depends on the flash and the ROM's release. */
#include "cortex_m.h"
#include "variant.h"

#define MAINTENANCE 0x18000000u  /* a write here maintains a line: by set and way, invalidate, is 0 */
#define SPACE_BYTES 0x04000000u
#define XIP_BYTES 0x4000u
#define LINE_BYTES 8u

extern void (*const vectors[])(void);
void flush_xip(void);
void connect_pads(void);

__attribute__((section(".boot"), used))
const struct {
    uint32_t start, image_type, table, table_place, last, next, end;
} boot_block = {
    .start = 0xffffded3u,
    .image_type = 0x1021u << 16 | 1u << 8 | 0x42u,   /* executable, secure, Arm, RP2350 */
    .table = 2u << 8 | 0x03u, .table_place = (uint32_t)vectors,
    .last = 3u << 8 | 0xffu, .next = 0, .end = 0xab123579u};

/* From RAM: the lines it runs from would be among those it drops. */
__attribute__((section(".data.flush_xip"), noinline))
void flush_xip(void)
{
    for (uint32_t offset = 0; offset < XIP_BYTES; offset += LINE_BYTES)
        *(volatile uint8_t *)(MAINTENANCE + SPACE_BYTES - XIP_BYTES + offset) = 0;
}

void connect_pads(void)
{
    for (uint32_t pin = 0; pin < 3; pin++)
        REGISTER(PADS_BANK0 + 4u + 4u * pin) = 0x56u;  /* not isolated, input on, 4 mA, pull-down */
}
