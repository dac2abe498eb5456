/* 160 MHz from the internal 16 MHz oscillator: 16 x 20 / 2, range 1 with the booster of the EPOD
 * (RM0456, RCC and PWR: the booster wants the PLL's source at 4 to 16 MHz). */
#include "stm32.h"
#include "variant.h"

#define RCC 0x46020c00u
#define CR RCC
#define CFGR1 (RCC + 0x1c)
#define CFGR2 (RCC + 0x20)
#define PLL1CFGR (RCC + 0x28)
#define PLL1DIVR (RCC + 0x34)
#define AHB2ENR1 (RCC + 0x8c)
#define AHB3ENR (RCC + 0x94)
#define APB2ENR (RCC + 0xa4)
#define PWR_VOSR 0x4602080cu
#define FLASH_ACR 0x40022000u

void start_clocks(void)
{
    change(AHB3ENR, 0, 1u << 2);                   /* PWR */
    change(CR, 0, 1u << 8);                        /* HSI16 */
    wait_for(CR, 1u << 10, 1u << 10);
    change(PWR_VOSR, 3u << 16, 3u << 16);          /* range 1 */
    wait_for(PWR_VOSR, 1u << 15, 1u << 15);
    REGISTER(PLL1CFGR) = 2u | 3u << 2 | 1u << 18;  /* HSI16, input 8 to 16 MHz, M = 1, R on */
    REGISTER(PLL1DIVR) = 19u | 1u << 9 | 1u << 16 | 1u << 24;  /* N = 20, P, Q and R = 2 */
    change(PWR_VOSR, 0, 1u << 18);                 /* booster */
    wait_for(PWR_VOSR, 1u << 14, 1u << 14);
    change(CR, 0, 1u << 24);
    wait_for(CR, 1u << 25, 1u << 25);
    change(FLASH_ACR, 15u, 4u | 1u << 8);          /* 4 wait states, prefetch */
    change(CFGR2, 15u, 8u);                        /* AHB at half the clock while switching */
    change(CFGR1, 0, 3u);
    wait_for(CFGR1, 3u << 2, 3u << 2);
    for (volatile uint32_t i = 0; i < 100; i++)    /* over a microsecond */
        ;
    change(CFGR2, 15u, 0);
    change(AHB2ENR1, 0, 1u | 1u << 5);             /* GPIOA, GPIOF */
    change(APB2ENR, 0, 1u << 14);                  /* USART1, from the APB clock */
}

void read_part_environment(struct wire_environment_reply *reply)
{
    reply->clock_source = 0;
}
