/* Start-up for any Cortex-M: vectors, memory, floating point, then the firmware. A vendor's CMSIS
 * `SystemInit` and `SystemCoreClock` are used when linked (EXTRA of the Makefile). */
#include "cortex_m.h"

#if __ARM_ARCH == 6
#define EXTERNAL_INTERRUPTS 32
#else
#define EXTERNAL_INTERRUPTS 240
#endif

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
extern uint32_t weights_load[], weights_start[], weights_end[];

void Reset_Handler(void);
void SysTick_Handler(void);
__attribute__((weak)) void SystemInit(void);

__attribute__((weak)) void SystemInit(void)
{
}

static void restart(void)
{
    SCB_AIRCR = 0x05fa0004u;  /* SYSRESETREQ: the host sees a board without a session */
    for (;;)
        ;
}

static void external(void)
{
    interrupts_seen++;
    port_interrupt();
}

#define REPEAT_16(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
__attribute__((section(".vectors"), used))
void (*const vectors[16 + EXTERNAL_INTERRUPTS])(void) = {
    (void (*)(void))stack_top, Reset_Handler, restart, restart, restart, restart, restart, restart,
    0, 0, 0, restart, restart, 0, restart, SysTick_Handler,
    REPEAT_16(external), REPEAT_16(external),
#if EXTERNAL_INTERRUPTS > 32
    REPEAT_16(external), REPEAT_16(external), REPEAT_16(external), REPEAT_16(external),
    REPEAT_16(external), REPEAT_16(external), REPEAT_16(external), REPEAT_16(external),
    REPEAT_16(external), REPEAT_16(external), REPEAT_16(external), REPEAT_16(external),
    REPEAT_16(external)
#endif
};

static void copy_words(const uint32_t *from, uint32_t *to, const uint32_t *end)
{
    if (from != to)
        while (to < end)
            *to++ = *from++;
}

void Reset_Handler(void)
{
    SCB_VTOR = (uint32_t)(uintptr_t)vectors;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    SCB_CPACR |= 0xfu << 20;  /* CP10 and CP11: floating point and vectors */
#endif
    barrier();
    copy_words(data_load, data_start, data_end);
    for (uint32_t *word = bss_start; word < bss_end; word++)
        *word = 0;
    SystemInit();
    run_firmware();
}

void copy_weights(void)
{
    copy_words(weights_load, weights_start, weights_end);
}

uint32_t mask_interrupts(void)
{
    uint32_t state;
    __asm volatile("mrs %0, primask\n\tcpsid i" : "=r"(state) :: "memory");
    return state;
}

void unmask_interrupts(uint32_t state)
{
    __asm volatile("msr primask, %0" :: "r"(state) : "memory");
}

void sleep_unless(uint32_t (*waits)(void))
{
    const uint32_t state = mask_interrupts();
    if (!waits())
        __asm volatile("dsb\n\twfi" ::: "memory");
    unmask_interrupts(state);
}
