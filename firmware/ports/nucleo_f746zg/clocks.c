/* 216 MHz from the internal 16 MHz oscillator, 16 / 8 x 216 / 2, in scale 1 with over-drive.
 * Registers: ports/REGISTERS.md. */
#include "stm32.h"
#include "variant.h"

#define RCC 0x40023800u
#define CR RCC
#define PLLCFGR (RCC + 0x04)
#define CFGR (RCC + 0x08)
#define AHB1ENR (RCC + 0x30)
#define APB1ENR (RCC + 0x40)
#define PWR_CR1 0x40007000u
#define PWR_CSR1 0x40007004u
#define FLASH_ACR 0x40023c00u

void start_clocks(void)
{
    change(APB1ENR, 0, 1u << 28);                 /* PWR */
    change(PWR_CR1, 0, 3u << 14);                 /* scale 1 */
    change(CR, 0, 1u);                            /* HSI */
    wait_for(CR, 1u << 1, 1u << 1);
    REGISTER(PLLCFGR) = 8u | 216u << 6 | 9u << 24;  /* HSI, M, N, P = 2, Q */
    change(CR, 0, 1u << 24);
    change(PWR_CR1, 0, 1u << 16);                 /* over-drive, then its switch */
    wait_for(PWR_CSR1, 1u << 16, 1u << 16);
    change(PWR_CR1, 0, 1u << 17);
    wait_for(PWR_CSR1, 1u << 17, 1u << 17);
    change(FLASH_ACR, 15u, FLASH_WAITS | 1u << 8 | 1u << 9);  /* prefetch, ART */
    wait_for(FLASH_ACR, 15u, FLASH_WAITS);
    wait_for(CR, 1u << 25, 1u << 25);
    change(CFGR, 15u << 4 | 7u << 10 | 7u << 13, 5u << 10 | 4u << 13);  /* APB: / 4, / 2 */
    change(CFGR, 3u, 2u);
    wait_for(CFGR, 3u << 2, 2u << 2);
    change(AHB1ENR, 0, 1u << 3 | 1u << 5);        /* GPIOD, GPIOF */
    change(APB1ENR, 0, 1u << 18);                 /* USART3, from the APB clock */
    barrier();
}
