/* 125 MHz from the 12 MHz crystal. Registers: RP2040 datasheet, sections named below. */
#include "cortex_m.h"

#define RESETS 0x4000c000u      /* 2.14 */
#define CLEAR_BITS 0x3000u      /* 2.1.2: alias of a register that clears bits */
#define PLL 0x40028000u         /* 2.18 */
#define CLOCKS 0x40008000u      /* 2.15 */
#define XOSC 0x40024000u        /* 2.16 */

void start_clocks(void);

void start_clocks(void)
{
    REGISTER(XOSC + 0x0c) = 47;                   /* start-up: 1 ms */
    REGISTER(XOSC) = 0xfabaa0u;
    while (!(REGISTER(XOSC + 0x04) >> 31))
        ;
    REGISTER(CLOCKS + 0x30) = 2;                  /* reference clock: crystal */
    while (REGISTER(CLOCKS + 0x38) != 1u << 2)
        ;
    REGISTER(RESETS + CLEAR_BITS) = 1u << 12;     /* PLL_SYS */
    while (!(REGISTER(RESETS + 0x08) & 1u << 12))
        ;
    REGISTER(PLL) = 1;
    REGISTER(PLL + 0x08) = 125;                   /* 12 MHz x 125 = 1500 MHz */
    REGISTER(PLL + CLEAR_BITS + 0x04) = 1u | 1u << 5;
    while (!(REGISTER(PLL) >> 31))
        ;
    REGISTER(PLL + 0x0c) = 6u << 16 | 2u << 12;   /* / 6 / 2 */
    REGISTER(PLL + CLEAR_BITS + 0x04) = 1u << 3;
    REGISTER(CLOCKS + 0x3c) = 1;                  /* system clock: PLL */
    while (REGISTER(CLOCKS + 0x44) != 1u << 1)
        ;
    REGISTER(CLOCKS + 0x48) = 1u << 11;           /* peripherals: the system clock */
}
