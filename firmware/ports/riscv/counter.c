/* Counters and interrupts by control registers (The RISC-V Instruction Set Manual, Volume II). */
#include "riscv.h"

#define MSTATUS_MIE 8u

void start_counter(void)
{
}

uint32_t read_counter(void)
{
    uint32_t value;
    __asm volatile("csrr %0, mcycle" : "=r"(value));
    return value;
}

const struct wire_counter *clock_counter(void)
{
    static const struct wire_counter counter = {
        .id = WIRE_N_CYCLES, .clock = WIRE_C_CPU, .bits = 32, .name = "mcycle"};
    return &counter;
}

uint32_t core_events(const struct wire_counter **list)
{
    static const struct wire_counter events[] = {
        {.id = WIRE_N_INSTRUCTIONS, .clock = WIRE_C_EVENTS, .bits = 32, .name = "minstret"}};
    *list = events;
    return sizeof events / sizeof events[0];
}

uint32_t select_core_events(const uint16_t *ids, uint32_t count)
{
    (void)ids;
    return count <= 1;
}

void read_core_events(uint32_t *values)
{
    __asm volatile("csrr %0, minstret" : "=r"(values[0]));
}

uint32_t core_features(void)
{
    return WIRE_F_CYCLES;
}

uint32_t read_core_id(void)
{
    uint32_t value;
    __asm volatile("csrr %0, marchid" : "=r"(value));
    return value;
}

void enable_caches(void)
{
}

void clean_invalidate_caches(void)
{
}

uint32_t mask_interrupts(void)
{
    uint32_t before;
    __asm volatile("csrrc %0, mstatus, %1" : "=r"(before) : "r"(MSTATUS_MIE) : "memory");
    return before & MSTATUS_MIE;
}

void unmask_interrupts(uint32_t state)
{
    __asm volatile("csrs mstatus, %0" :: "r"(state) : "memory");
}
