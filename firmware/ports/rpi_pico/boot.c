/* The 256 bytes the boot ROM copies to RAM and runs (RP2040 datasheet, 2.8.1): set the flash
 * interface to plain serial reads (command 03h), which every flash answers, and start the image.
 * Reads with one data line make a miss of the XIP cache dear; the board file says what it assumes.
 * The checksum at the end is put in by `twin firmware build`. Registers: datasheet, 4.10. */
#include "cortex_m.h"
#include "variant.h"

#define SSI 0x18000000u

__attribute__((section(".boot"), naked, used)) void boot(void);

void boot(void)
{
    __asm volatile(
        "ldr r0, =%c[ssi]\n\t"
        "movs r1, #0\n\t"
        "str r1, [r0, #0x08]\n\t"          /* SSIENR: off */
        "movs r1, #4\n\t"
        "str r1, [r0, #0x14]\n\t"          /* BAUDR: a quarter of the clock */
        "ldr r1, =%c[control]\n\t"
        "str r1, [r0, #0x00]\n\t"          /* CTRLR0 */
        "movs r1, #0\n\t"
        "str r1, [r0, #0x04]\n\t"          /* CTRLR1: one word at a time */
        "ldr r1, =%c[serial]\n\t"
        "movs r2, #0xf4\n\t"
        "str r1, [r0, r2]\n\t"             /* SPI_CTRLR0 */
        "movs r1, #1\n\t"
        "str r1, [r0, #0x08]\n\t"          /* SSIENR: on */
        "ldr r0, =vectors\n\t"
        "ldr r1, =0xe000ed08\n\t"
        "str r0, [r1]\n\t"                 /* VTOR */
        "ldr r1, [r0, #4]\n\t"
        "ldr r0, [r0]\n\t"
        "mov sp, r0\n\t"
        "bx r1\n\t"
        ".ltorg\n\t"
        ".org 252\n\t"                     /* the checksum takes the last of the 256 bytes */
        ".word 0\n\t"
        :: [ssi] "i"(SSI),
           [control] "i"(31u << 16 | 3u << 8),            /* 32-bit frames, read by address */
           [serial] "i"(3u << 24 | 2u << 8 | 6u << 2));   /* 03h, 8 bits of it, 24 of address */
}

void flush_xip(void);
void connect_pads(void);

void flush_xip(void)
{
    REGISTER(XIP + 0x04) = 1;
    (void)REGISTER(XIP + 0x04);  /* answered when the flush is done */
}

void connect_pads(void)
{
    /* they are from reset on */
}
