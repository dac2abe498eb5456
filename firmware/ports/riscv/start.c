/* Start-up of a RISC-V core: stack, memory, then the firmware. */
#include "riscv.h"

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[];
extern uint32_t weights_load[], weights_start[], weights_end[];

void enter(void);
void _start(void);

static void copy_words(const uint32_t *from, uint32_t *to, const uint32_t *end)
{
    if (from != to)
        while (to < end)
            *to++ = *from++;
}

__attribute__((section(".start"), naked, used)) void _start(void)
{
    __asm volatile("la sp, stack_top\n\tj enter");
}

__attribute__((used)) void enter(void)
{
    copy_words(data_load, data_start, data_end);
    for (uint32_t *word = bss_start; word < bss_end; word++)
        *word = 0;
    run_firmware();
}

void copy_weights(void)
{
    copy_words(weights_load, weights_start, weights_end);
}
