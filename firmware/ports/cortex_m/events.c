/* Event counters of the core. */
#include "cortex_m.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static uint32_t available;

#if defined(__ARM_FEATURE_MVE)

/* Armv8.1-M PMU (DDI 0553, chapter on the Performance Monitoring Unit; names and numbers as in
 * CMSIS pmu_armv8.h). Counters have 16 bits: each event takes an even one and the odd one behind
 * it, which counts its overflows (CHAIN). */
#define CHAIN 0x001eu
#define PMU_EVENT(number, label) \
    {.id = WIRE_N_PMU + (number), .clock = WIRE_C_EVENTS, .bits = 32, .name = label}

static const struct wire_counter events[] = {
    PMU_EVENT(0x0001, "l1i refill"), PMU_EVENT(0x0003, "l1d refill"), PMU_EVENT(0x0004, "l1d"),
    PMU_EVENT(0x0006, "ld retired"), PMU_EVENT(0x0007, "st retired"),
    PMU_EVENT(0x0008, "inst retired"), PMU_EVENT(0x0009, "exc taken"),
    PMU_EVENT(0x000c, "pc write retired"), PMU_EVENT(0x000f, "unaligned ldst"),
    PMU_EVENT(0x0013, "mem access"), PMU_EVENT(0x0014, "l1i"), PMU_EVENT(0x0015, "l1d wb"),
    PMU_EVENT(0x0019, "bus access"), PMU_EVENT(0x001d, "bus cycles"),
    PMU_EVENT(0x0021, "br retired"), PMU_EVENT(0x0023, "stall frontend"),
    PMU_EVENT(0x0024, "stall backend"), PMU_EVENT(0x0100, "le retired"),
    PMU_EVENT(0x0200, "mve inst"), PMU_EVENT(0x0224, "mve int"), PMU_EVENT(0x0228, "mve int mac"),
    PMU_EVENT(0x0238, "mve ldst"), PMU_EVENT(0x02b8, "mve pred"), PMU_EVENT(0x02cc, "mve stall"),
    PMU_EVENT(0x02cd, "mve stall resource"), PMU_EVENT(0x02ce, "mve stall mem"),
    PMU_EVENT(0x02d4, "mve stall depend"), PMU_EVENT(0x4007, "itcm access"),
    PMU_EVENT(0x4008, "dtcm access")};

static uint32_t pairs;

void start_core_events(void)
{
    available = (PMU_TYPE & 0xffu) >= 2u * CORE_EVENTS_AT_ONCE;
}

uint32_t select_core_events(const uint16_t *ids, uint32_t count)
{
    if (count > CORE_EVENTS_AT_ONCE || (count > 0 && !available))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        PMU_EVTYPER(2u * i) = ids[i] - (uint32_t)WIRE_N_PMU;
        PMU_EVTYPER(2u * i + 1u) = CHAIN;
    }
    if (count > 0)
        PMU_CNTENSET = (1u << 2u * count) - 1u;
    barrier();
    pairs = count;
    return 1;
}

void read_core_events(uint32_t *values)
{
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t upper, lower;
        do {  /* the pair is read in two: again when the lower one has just wrapped */
            upper = PMU_EVCNTR(2u * i + 1u);
            lower = PMU_EVCNTR(2u * i);
        } while (upper != PMU_EVCNTR(2u * i + 1u));
        values[i] = (upper & 0xffffu) << 16 | (lower & 0xffffu);
    }
}

#else

#define DWT_EVENT_BITS (31u << 17)  /* CPIEVTENA to FOLDEVTENA of DWT_CTRL */
#define DWT_EVENT(number, label) \
    {.id = (number), .clock = WIRE_C_EVENTS, .bits = 8, .name = label}

static const struct wire_counter events[] = {
    DWT_EVENT(WIRE_N_DWT_CPI, "dwt cpicnt"), DWT_EVENT(WIRE_N_DWT_EXCEPTION, "dwt exccnt"),
    DWT_EVENT(WIRE_N_DWT_SLEEP, "dwt sleepcnt"), DWT_EVENT(WIRE_N_DWT_LSU, "dwt lsucnt"),
    DWT_EVENT(WIRE_N_DWT_FOLD, "dwt foldcnt")};

static uint8_t selected[COUNT(events)];
static uint32_t selected_count;

void start_core_events(void)
{
    DWT_CTRL |= DWT_EVENT_BITS;  /* all five run; selecting is remembering */
    available = (DWT_CTRL & DWT_EVENT_BITS) == DWT_EVENT_BITS;
}

uint32_t select_core_events(const uint16_t *ids, uint32_t count)
{
    if (count > COUNT(events) || (count > 0 && !available))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        selected[i] = (uint8_t)(ids[i] - WIRE_N_DWT_CPI);
    selected_count = count;
    return 1;
}

void read_core_events(uint32_t *values)
{
    for (uint32_t i = 0; i < selected_count; i++)
        values[i] = REGISTER(DWT_CPICNT_ADDRESS + 4u * selected[i]);
}

#endif

uint32_t core_events(const struct wire_counter **list)
{
    *list = events;
    return available ? COUNT(events) : 0;
}
