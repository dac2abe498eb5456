/* The PLL from the internal 64 MHz oscillator: core at 800 MHz (64 / 2 x 25) or 600 MHz (64 / 4 x 75 / 2),
 * buses and memories at 400 MHz, AHB and APB at half of it. Registers: ports/REGISTERS.md. */
#include "stm32.h"
#include "variant.h"

#define RCC 0x56028000u
#define SR (RCC + 0x004)
#define CFGR1 (RCC + 0x020)
#define CFGR2 (RCC + 0x024)
#define PLL1CFGR1 (RCC + 0x080)
#define PLL1CFGR2 (RCC + 0x084)
#define PLL1CFGR3 (RCC + 0x088)
#define IC1CFGR (RCC + 0x0c4)
#define IC2CFGR (RCC + 0x0c8)
#define IC6CFGR (RCC + 0x0d8)
#define IC11CFGR (RCC + 0x0ec)
#define CCIPR13 (RCC + 0x174)
#define CSR (RCC + 0x800)      /* a one sets the bit of CR */
#define DIVENSR (RCC + 0xa40)
#define MEMENSR (RCC + 0xa4c)
#define AHB4ENSR (RCC + 0xa5c)
#define APB2ENSR (RCC + 0xa6c)
#define APB4ENSR2 (RCC + 0xa78)
#define CCR (RCC + 0x1000)     /* a one clears the bit of CR */
#define PWR_CR1 0x56024800u
#define PWR_VOSCR 0x56024820u
#define GPIOF 0x56021400u
#define MSCR 0xe001e000u
#define NVIC_ICER(n) REGISTER(0xe000e180 + 4u * (n))

#define HSI (1u << 3)
#define PLL1 (1u << 8)
#define SWITCHES (3u << 16 | 3u << 24)   /* of the core, of the buses */
#define VOSRDY (1u << 1)
#define ACTVOSRDY (1u << 17)
#ifdef CORE_600
#define PLL_M 4u
#define PLL_N 75u
#define CORE_DIVIDER 2u
#define BUS_DIVIDER 3u
#else
#define PLL_M 2u
#define PLL_N 25u
#define CORE_DIVIDER 1u
#define BUS_DIVIDER 2u
#endif
#ifndef SETTLE_US
#define SETTLE_US 3000u
#endif

/* What the boot ROM may have left: interrupts, caches that do not look up, another clock. */
static void take_over(void)
{
    for (uint32_t i = 0; i < 8; i++)
        NVIC_ICER(i) = 0xffffffffu;
    change(MSCR, 0, 3u << 12);                         /* ICACTIVE, DCACTIVE */
    REGISTER(AHB4ENSR) = 1u << 18 | 1u << 3 | 1u << 4 | 1u << 5;  /* PWR; pins D, E, F */
    REGISTER(APB4ENSR2) = 1u << 1;                     /* BSEC: it holds the part's number */
    REGISTER(MEMENSR) = 1u << 7 | 1u << 8;             /* AXISRAM1, AXISRAM2 */
    REGISTER(CSR) = HSI;
    wait_for(SR, HSI, HSI);
    change(CFGR1, SWITCHES, 0);
    wait_for(CFGR1, SWITCHES << 4, 0);
}

/* The board's regulator feeds the core; PF4 raises it from revision C on. */
static void raise_voltage(void)
{
    change(PWR_CR1, 1u << 2, 0);                       /* SDEN: the part's own is off */
    wait_for(PWR_VOSCR, ACTVOSRDY, ACTVOSRDY);
#ifndef CORE_600
    use_pin(GPIOF, 4, PIN_OUTPUT, 0);
    set_pin(GPIOF, 4, 1);
    wait_us(SETTLE_US);
    change(PWR_VOSCR, 0, 1u);                          /* range 0 */
    wait_for(PWR_VOSCR, VOSRDY, VOSRDY);
#endif
}

static void start_pll(void)
{
    REGISTER(CCR) = PLL1;
    wait_for(SR, PLL1, 0);
    change(PLL1CFGR3, 1u << 3 | 63u << 24, 1u << 2 | 1u << 24 | 1u << 27);  /* integer; / 1 / 1 */
    change(PLL1CFGR1, 0x78000000u | 0x3ffff00u, PLL_M << 20 | PLL_N << 8);  /* of the HSI */
    REGISTER(PLL1CFGR2) &= 0xff000000u;                /* no fraction */
    change(PLL1CFGR3, 0, 1u | 1u << 30);               /* output on */
    REGISTER(CSR) = PLL1;
    wait_for(SR, PLL1, PLL1);
}

void start_clocks(void)
{
    take_over();
    raise_voltage();
    start_pll();
    change(CFGR2, 7u << 20, 1u << 20);                 /* AHB at half; APB undivided */
    REGISTER(IC1CFGR) = (CORE_DIVIDER - 1u) << 16;
    REGISTER(IC2CFGR) = (BUS_DIVIDER - 1u) << 16;
    REGISTER(IC6CFGR) = (BUS_DIVIDER - 1u) << 16;      /* NPU and its memories: on, or nothing switches */
    REGISTER(IC11CFGR) = (BUS_DIVIDER - 1u) << 16;
    REGISTER(DIVENSR) = 1u | 1u << 1 | 1u << 5 | 1u << 10;
    change(CFGR1, 0, SWITCHES);
    wait_for(CFGR1, SWITCHES << 4, SWITCHES << 4);
    change(CCIPR13, 7u, 6u);                           /* USART1 from the HSI */
    REGISTER(APB2ENSR) = 1u << 4;
    barrier();
}
