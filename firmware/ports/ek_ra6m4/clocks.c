/* 200 MHz from the 24 MHz crystal, 24 / 3 x 25, and the caches of code and flash. Registers:
 * ports/REGISTERS.md. */
#include "cortex_m.h"

#define BYTE(address) (*(volatile uint8_t *)(uintptr_t)(address))
#define HALF(address) (*(volatile uint16_t *)(uintptr_t)(address))
#define SYSTEM 0x4001e000u
#define OSCSF BYTE(SYSTEM + 0x3c)
#define FCACHE 0x4001c000u
#define CACHE 0x40007000u

void SystemInit(void);
void start_clocks(void);
void empty_part_caches(void);

uint32_t SystemCoreClock = 200000000u;

void empty_part_caches(void)
{
    REGISTER(CACHE + 0x04) = 1;                   /* CCAFCT: flush */
    while (REGISTER(CACHE + 0x04) & 1u)
        ;
    HALF(FCACHE + 0x104) = 1;                     /* FCACHEIV */
    while (HALF(FCACHE + 0x104) & 1u)
        ;
    barrier();
}

void start_clocks(void)
{
    HALF(SYSTEM + 0x3fe) = 0xa503u;               /* PRCR: clocks and power are writable */
    BYTE(SYSTEM + 0x413) = 0;                     /* MOMCR: a crystal of 20 to 24 MHz */
    BYTE(SYSTEM + 0xa2) = 9;                      /* MOSCWTCR */
    BYTE(SYSTEM + 0x32) = 0;                      /* MOSCCR: on */
    while (!(OSCSF & 1u << 3))
        ;
    HALF(SYSTEM + 0x28) = 49u << 8 | 2u;          /* PLLCCR: crystal / 3 x 25 */
    BYTE(SYSTEM + 0x2a) = 0;                      /* PLLCR: on */
    while (!(OSCSF & 1u << 5))
        ;
    BYTE(0x40002004) = 0x78u << 1 | 1u;           /* SRAMPRCR */
    BYTE(0x40002008) = 1;                         /* SRAMWTSC: a wait state */
    BYTE(0x40002004) = 0x78u << 1;
    BYTE(FCACHE + 0x11c) = 3;                     /* FLWT: three wait states */
    REGISTER(SYSTEM + 0x20) = 2u << 28 | 1u << 16 | 1u << 12 | 2u << 8 | 2u << 4 | 1u;
    BYTE(SYSTEM + 0x26) = 5;                      /* SCKSCR: the PLL */
    HALF(SYSTEM + 0x3fe) = 0xa500u;
    barrier();
}

void SystemInit(void)
{
    start_clocks();
    empty_part_caches();
    REGISTER(CACHE + 0x08) = 1;                   /* CCALCF: lines of 32 bytes */
    REGISTER(CACHE) = 1;                          /* CCACTL: on */
    HALF(FCACHE + 0x100) = 1;                     /* FCACHEE: on */
    barrier();
}
