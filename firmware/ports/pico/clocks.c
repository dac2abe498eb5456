/* The PLL from the 12 MHz crystal: 12 x 125 / 6 / 2, 125 MHz (RP2040), or / 5 / 2, 150 MHz (RP2350).
 * Registers: RP2040 datasheet, sections named below; the RP2350 has them at other bases. */
#include "cortex_m.h"
#include "variant.h"

#define CLEAR_BITS 0x3000u      /* 2.1.2: alias of a register that clears bits */

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
    REGISTER(RESETS + CLEAR_BITS) = PLL_RESET;    /* PLL_SYS */
    while (!(REGISTER(RESETS + 0x08) & PLL_RESET))
        ;
    REGISTER(PLL) = 1;
    REGISTER(PLL + 0x08) = 125;                   /* 12 MHz x 125 = 1500 MHz */
    REGISTER(PLL + CLEAR_BITS + 0x04) = 1u | 1u << 5;
    while (!(REGISTER(PLL) >> 31))
        ;
    REGISTER(PLL + 0x0c) = POST_DIVIDER << 16 | 2u << 12;
    REGISTER(PLL + CLEAR_BITS + 0x04) = 1u << 3;
    REGISTER(CLOCKS + 0x3c) = 1;                  /* system clock: PLL */
    while (REGISTER(CLOCKS + 0x44) != 1u << 1)
        ;
    REGISTER(CLOCKS + 0x48) = 1u << 11;           /* peripherals: the system clock */
}
