/* The running counter: the PMU's, DWT's CYCCNT, else SysTick, whichever is seen to move. */
#include "cortex_m.h"

#define SYSTICK_TICKS (1u << 24)
#define DEMCR_TRCENA (1u << 24)
#define ICSR_PENDSTSET (1u << 26)
#define LAR_KEY 0xc5acce55u

enum source { SYSTICK, DWT, PMU };

static enum source source;
static volatile uint32_t wraps;

void SysTick_Handler(void);

void SysTick_Handler(void)
{
    wraps++;
}

#if __ARM_ARCH >= 7

static uint32_t moves(volatile uint32_t *counter)
{
    const uint32_t before = *counter;
    for (volatile uint32_t i = 0; i < 16; i++)
        ;
    return *counter != before;
}

static enum source find_source(void)
{
    SCB_DEMCR |= DEMCR_TRCENA;
    barrier();
#if defined(__ARM_FEATURE_MVE)
    PMU_CTRL |= 1u;
    PMU_CNTENSET = 1u << 31;
    barrier();
    if (moves(&PMU_CCNTR))
        return PMU;
#endif
    DWT_LAR = LAR_KEY;  /* Cortex-M7 locks its DWT; others ignore this */
    DWT_CTRL |= 1u;
    barrier();
    return moves(&DWT_CYCCNT) ? DWT : SYSTICK;
}

#else

static enum source find_source(void)
{
    return SYSTICK;
}

#endif

void start_counter(void)
{
    source = find_source();
    if (source == SYSTICK) {
        SYST_RVR = SYSTICK_TICKS - 1u;
        SYST_CVR = 0;
        SYST_CSR = 7;  /* processor clock, interrupt, on */
    } else {
        start_core_events();
    }
}

uint32_t has_cycle_counter(void)
{
    return source != SYSTICK;
}

static uint32_t read_systick(void)
{
    /* A wrap that waits for its interrupt (masked, or just now) is counted here; two are lost. */
    uint32_t before, value, pending;
    do {
        before = wraps;
        value = SYST_CVR;
        pending = SCB_ICSR & ICSR_PENDSTSET;
    } while (before != wraps);
    if (pending)
        value = SYST_CVR;
    return (before + (pending != 0)) * SYSTICK_TICKS + (SYSTICK_TICKS - 1u - value);
}

uint32_t read_counter(void)
{
    if (source == DWT)
        return DWT_CYCCNT;
    return source == PMU ? PMU_CCNTR : read_systick();
}

const struct wire_counter *clock_counter(void)
{
    static const struct wire_counter counters[] = {
        [SYSTICK] = {.id = WIRE_N_CYCLES, .clock = WIRE_C_CPU, .bits = 32, .name = "systick"},
        [DWT] = {.id = WIRE_N_CYCLES, .clock = WIRE_C_CPU, .bits = 32, .name = "dwt cyccnt"},
        [PMU] = {.id = WIRE_N_CYCLES, .clock = WIRE_C_CPU, .bits = 32, .name = "pmu ccntr"}};
    return &counters[source];
}

uint32_t core_features(void)
{
    const struct wire_counter *list;
    uint32_t features = WIRE_F_MASK;
    features |= has_cycle_counter() ? WIRE_F_CYCLES : WIRE_F_TIMER;
    features |= core_events(&list) > 0 ? CORE_EVENT_FEATURE : 0;
    return features | (has_caches() ? WIRE_F_COLD : 0);
}
