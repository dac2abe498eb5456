#include "probes.h"

#if defined(__arm__)
#define JUMP "b"
#elif defined(__riscv)
#define JUMP "j"
#else
#define JUMP "jmp"
#endif

static void do_nothing(void)
{
}

static void (*volatile callee)(void) = do_nothing;

void branch_taken(uint32_t laps)
{
    for (; laps > 0; laps--)  /* over an instruction: to the next one would be no branch at all */
        __asm__ volatile(".rept 8\n" JUMP " 1f\nnop\n1:\n.endr");
}

void call_nothing(uint32_t laps)
{
    for (; laps > 0; laps--)
        callee();
}

void loop_nothing(uint32_t laps)
{
    for (; laps > 0; laps--)
        __asm__ volatile("");
}
