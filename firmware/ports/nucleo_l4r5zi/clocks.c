/* 120 MHz from the internal 16 MHz oscillator, 16 / 2 x 30 / 2, in range 1 boost (RM0432, RCC and
 * PWR: above 80 MHz the bus runs at half the clock while the switch is made). */
#include "stm32.h"
#include "variant.h"

#define RCC 0x40021000u
#define CR RCC
#define CFGR (RCC + 0x08)
#define PLLCFGR (RCC + 0x0c)
#define AHB2ENR (RCC + 0x4c)
#define APB1ENR1 (RCC + 0x58)
#define APB1ENR2 (RCC + 0x5c)
#define PWR_CR2 0x40007004u
#define PWR_CR5 0x40007080u

void start_clocks(void)
{
    change(APB1ENR1, 0, 1u << 28);                /* PWR */
    change(PWR_CR5, 1u << 8, 0);                  /* R1MODE = 0: boost */
    change(PWR_CR2, 0, 1u << 9);                  /* IOSV: the pins of port G are supplied */
    change(FLASH_ACR, 15u, 5u | 1u << 8 | 1u << 9 | 1u << 10);  /* 5 wait states, caches, prefetch */
    change(CR, 0, 1u << 8);                       /* HSI16 */
    wait_for(CR, 1u << 10, 1u << 10);
    REGISTER(PLLCFGR) = 2u | 1u << 4 | 30u << 8 | 1u << 24;  /* HSI16, M = 2, N, R = 2 on */
    change(CR, 0, 1u << 24);
    wait_for(CR, 1u << 25, 1u << 25);
    change(CFGR, 15u << 4, 8u << 4);              /* AHB at half the clock */
    change(CFGR, 0, 3u);
    wait_for(CFGR, 3u << 2, 3u << 2);
    for (volatile uint32_t i = 0; i < 100; i++)   /* over a microsecond */
        ;
    change(CFGR, 15u << 4, 0);
    change(AHB2ENR, 0, 1u << 5 | 1u << 6);        /* GPIOF, GPIOG */
    change(APB1ENR2, 0, 1u);                      /* LPUART1, from the APB clock */
}
