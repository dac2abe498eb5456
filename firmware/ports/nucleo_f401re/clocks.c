/* 84 MHz from the internal 16 MHz oscillator: 16 / 16 x 336 / 4 (RM0368, RCC; DS10086). */
#include "stm32.h"
#include "variant.h"

#define RCC 0x40023800u
#define CR RCC
#define PLLCFGR (RCC + 0x04)
#define CFGR (RCC + 0x08)
#define AHB1ENR (RCC + 0x30)
#define APB1ENR (RCC + 0x40)
#define PWR_CR 0x40007000u

void start_clocks(void)
{
    change(APB1ENR, 0, 1u << 28);                 /* PWR */
    change(PWR_CR, 3u << 14, 2u << 14);           /* VOS: scale 2, up to 84 MHz */
    change(FLASH_ACR, 15u, 2u | 1u << 8 | 1u << 9 | 1u << 10);  /* 2 wait states, ART on */
    REGISTER(PLLCFGR) = 16u | 336u << 6 | 1u << 16 | 7u << 24;  /* M, N, P = 4, Q; source HSI */
    change(CR, 0, 1u << 24);
    wait_for(CR, 1u << 25, 1u << 25);
    change(CFGR, 7u << 10, 4u << 10);             /* APB1 at half the clock */
    change(CFGR, 3u, 2u);
    wait_for(CFGR, 3u << 2, 2u << 2);
    change(AHB1ENR, 0, 1u);                       /* GPIOA */
    change(APB1ENR, 0, 1u << 17);                 /* USART2 */
}
