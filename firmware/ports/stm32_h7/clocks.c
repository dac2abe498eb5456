/* The PLL from the internal 64 MHz oscillator, 64 / 32 x N / P, at the highest voltage of the supply
 * the board has. Registers: ports/REGISTERS.md. */
#include "stm32.h"
#include "variant.h"

#define RCC 0x58024400u
#define CR RCC
#define CFGR (RCC + 0x10)
#define D1CFGR (RCC + 0x18)     /* CDCFGR1 of the H7A3 */
#define D2CFGR (RCC + 0x1c)
#define D3CFGR (RCC + 0x20)
#define PLLCKSELR (RCC + 0x28)
#define PLLCFGR (RCC + 0x2c)
#define PLL1DIVR (RCC + 0x30)
#ifdef AHB4ENR_PLACE            /* the H7A3 has another */
#define AHB4ENR (RCC + AHB4ENR_PLACE)
#else
#define AHB4ENR (RCC + 0xe0)
#endif
#define PWR 0x58024800u
#define PWR_CSR1 (PWR + 0x04)
#define PWR_CR3 (PWR + 0x0c)
#define PWR_D3CR (PWR + 0x18)   /* SRDCR of the H7A3 */
#define FLASH_ACR 0x52002000u
#define RDY (1u << 13)          /* ACTVOSRDY, VOSRDY */
#define MULTIPLIER (FAST() ? PLL_N : PLL_N_SLOW)

uint32_t find_cpu_hz(void)
{
    return 2000000u * MULTIPLIER / PLL_P;
}

void start_clocks(void)
{
    change(PWR_CR3, SUPPLY_MASK, SUPPLY);
    wait_for(PWR_CSR1, RDY, RDY);
    change(PWR_D3CR, 3u << 14, VOS << 14);
    wait_for(PWR_D3CR, RDY, RDY);
    change(FLASH_ACR, 0x3fu, FLASH_WAITS | 3u << 4);
    wait_for(FLASH_ACR, 0xfu, FLASH_WAITS);
    change(CR, 3u << 3, 1u);                       /* HSI, not divided */
    wait_for(CR, 1u << 2, 1u << 2);
    REGISTER(PLLCKSELR) = 32u << 4;                /* HSI; M = 32: 2 MHz */
    change(PLLCFGR, 0xfu, 1u << 2 | 1u << 16);     /* input 2 to 4 MHz, wide range, P on */
    REGISTER(PLL1DIVR) = (MULTIPLIER - 1u) | (PLL_P - 1u) << 9 | 1u << 16 | 1u << 24;
    change(CR, 0, 1u << 24);
    wait_for(CR, 1u << 25, 1u << 25);
    REGISTER(D1CFGR) = BUS_DIVIDER | 4u << 4;      /* core undivided; APB at half of the bus */
    REGISTER(D2CFGR) = 4u << 4 | 4u << 8;
    REGISTER(D3CFGR) = 4u << 4;
    change(CFGR, 7u, 3u);
    wait_for(CFGR, 7u << 3, 3u << 3);
    change(AHB4ENR, 0, PIN_BLOCKS);
    change(UART_ENR, 0, UART_EN);
    barrier();
}
