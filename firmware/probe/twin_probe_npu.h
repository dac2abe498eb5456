/* twin_probe_npu.h: epochs of ST's Neural-ART, timed in an inference you run under LL_ATON.
 *
 * Beside twin_probe.h, with the same settings, in one C or C++ file:
 *
 *     #define TWIN_PROBE_HERE
 *     #define TWIN_PROBE_PUT(byte) uart_send(byte)
 *     #define TWIN_PROBE_HZ SystemCoreClock
 *     #define TWIN_PROBE_NPU_HZ 1000000000     what the NPU runs at
 *     #include "twin_probe_npu.h"
 *
 *     LL_ATON_RT_SetNetworkCallback(&instance, twin_probe_npu_epoch);   older runtimes:
 *                                              LL_ATON_RT_SetEpochCallback(twin_probe_npu_epoch, &instance)
 *     LL_ATON_RT_RuntimeInit(); LL_ATON_RT_Init_Network(&instance);
 *     twin_probe_npu_begin("ic");
 *     ... LL_ATON_RT_RunEpochBlock(&instance) until it is done, without sleeping
 *     twin_probe_npu_end();                    sends; nothing is sent before
 *
 * Each epoch block gives the host's cycles before, during and after it. The NPU's debug unit counts 16
 * signals at once, more are there, so inferences take turns: one counts NPU cycles and what stream engines are
 * active, the next the bursts of both bus interfaces. Compile with LL_ATON_EB_DBG_INFO: the runtime then
 * tells epochs' numbers and engines; else blocks are numbered and engines are not counted.
 *
 * While the core sleeps (LL_ATON_OSAL_WFE) its counter may stand still: have the loop poll. Settings:
 *
 *     TWIN_PROBE_NPU_EPOCHS   blocks kept of an inference, 160 by default: 120 bytes each
 *     TWIN_PROBE_NPU_CACHE    address of the NPU cache's registers, (uintptr_t)CACHEAXI: its hits and
 *                             misses in every inference */
#ifndef TWIN_PROBE_NPU_H
#define TWIN_PROBE_NPU_H

#include "ll_aton_rt_user_api.h"
#include "ll_aton_dbgtrc.h"
#ifndef TWIN_PROBE_NPU_HZ
#define TWIN_PROBE_NPU_HZ 0
#endif
#include "twin_probe.h"

#ifdef __cplusplus
extern "C" {
#endif

void twin_probe_npu_begin(const char *network);
void twin_probe_npu_epoch(LL_ATON_RT_Callbacktype_t type, const NN_Instance_TypeDef *instance,
                          const EpochBlock_ItemTypeDef *block);
void twin_probe_npu_end(void);

#ifdef __cplusplus
}
#endif

#endif

#if defined(TWIN_PROBE_HERE) && !defined(TWIN_PROBE_NPU_DEFINED)
#define TWIN_PROBE_NPU_DEFINED

#ifdef TWIN_PROBE_COBS
#error "epochs are sent as text: do not define TWIN_PROBE_COBS"
#endif
#ifndef TWIN_PROBE_NPU_EPOCHS
#define TWIN_PROBE_NPU_EPOCHS 160
#endif
#define TWIN_PROBE_NPU_COUNTERS 16
#define TWIN_PROBE_NPU_ENGINES 10

static struct {
    struct {
        const EpochBlock_ItemTypeDef *block;
        uint32_t from, pre, core, post, open;
        uint32_t counted[TWIN_PROBE_NPU_COUNTERS], cache[8];
    } epochs[TWIN_PROBE_NPU_EPOCHS];
    uint32_t count, lost, cached[8];
} twin_probe_npu;

/* ---- the debug unit's counters ---- */
static uint32_t twin_probe_npu_counts_bursts(void)
{
    return twin_probe.run % 2u;
}

static void twin_probe_npu_set(uint32_t counter, uint32_t signal, uint32_t event)
{
    LL_Dbgtrc_Counter_InitTypdef set = {0, 0, 0, 0, 0, 0};
    set.signal = signal;
    set.evt_type = (unsigned char)event;
    set.int_disable = 1;
    LL_Dbgtrc_Counter_Init(0, (int)counter, &set);
}

/* Bursts: interface, then write or read, then 1, 2, 4, 8 beats. */
static uint32_t twin_probe_npu_set_bursts(void)
{
    for (uint32_t i = 0; i < TWIN_PROBE_NPU_COUNTERS; i++) {
        const uint32_t first = i & 4u ? BUS_INTERFACE_READ1X8B : BUS_INTERFACE_WRITE1X8B;
        twin_probe_npu_set(i, first + 2u * (i & 3u) + (i >> 3), DBGTRC_EVT_HI);
    }
    return TWIN_PROBE_NPU_COUNTERS;
}

/* NPU cycles, then engines by number: those of the inputs drive the switch, those of the outputs are
 * driven by it; both are active while they do not stall. */
static uint32_t twin_probe_npu_set_engines(const EpochBlock_ItemTypeDef *block)
{
    uint32_t used = 1;
    twin_probe_npu_set(0, DBGTRC_VDD, DBGTRC_EVT_HI);
#ifdef LL_ATON_EB_DBG_INFO
    for (uint32_t i = 0; i < TWIN_PROBE_NPU_ENGINES; i++) {
        const uint32_t in = block->in_streng_mask >> i & 1u;
        if (in || (block->out_streng_mask >> i & 1u))
            twin_probe_npu_set(used++, (in ? SWITCH_OSTRX_STALL : SWITCH_ISTRX_STALL) + i,
                               DBGTRC_EVT_LOW);
    }
#else
    (void)block;
#endif
    return used;
}

/* A hybrid epoch's own block is the host's; what the NPU does of it are blocks it inserts. */
static uint32_t twin_probe_npu_used(const EpochBlock_ItemTypeDef *block)
{
    uint32_t used = 1;
    if (block->flags & (EpochBlock_Flags_pure_sw | EpochBlock_Flags_hybrid))
        return 0;
    if (twin_probe_npu_counts_bursts())
        return TWIN_PROBE_NPU_COUNTERS;
#ifdef LL_ATON_EB_DBG_INFO
    for (uint32_t i = 0; i < TWIN_PROBE_NPU_ENGINES; i++)
        used += (block->in_streng_mask | block->out_streng_mask) >> i & 1u;
#endif
    return used;
}

static void twin_probe_npu_start(uint32_t used)
{
    for (uint32_t i = 0; i < used; i++)
        LL_Dbgtrc_Counter_Start(0, (int)i);
}

static void twin_probe_npu_read_cache(uint32_t *values)
{
    for (uint32_t i = 0; i < 8; i++) {
#ifdef TWIN_PROBE_NPU_CACHE  /* RHMONR and on */
        values[i] = TWIN_PROBE_REGISTER(TWIN_PROBE_NPU_CACHE + 0x10u + 4u * i);
#else
        values[i] = 0;
#endif
    }
}

/* ---- callbacks ---- */
void twin_probe_npu_begin(const char *network)
{
    LL_Dbgtrc_Init(0);
#ifdef TWIN_PROBE_NPU_CACHE
    TWIN_PROBE_REGISTER(TWIN_PROBE_NPU_CACHE) |= 0x33330000u;  /* CR1: all monitors count */
#endif
    twin_probe_npu.count = twin_probe_npu.lost = 0;
    twin_probe_begin(network);
}

/* The block that began last and has not ended. */
static uint32_t twin_probe_npu_find(const EpochBlock_ItemTypeDef *block)
{
    uint32_t place = twin_probe_npu.count;
    while (place > 0) {
        place--;
        if (twin_probe_npu.epochs[place].open && twin_probe_npu.epochs[place].block == block)
            return place;
    }
    return TWIN_PROBE_NPU_EPOCHS;
}

static void twin_probe_npu_open(const EpochBlock_ItemTypeDef *block)
{
    const uint32_t place = twin_probe_npu.count;
    if (place == TWIN_PROBE_NPU_EPOCHS) {
        twin_probe_npu.lost++;
        return;
    }
    twin_probe_npu.count++;
    twin_probe_npu.epochs[place].block = block;
    twin_probe_npu.epochs[place].open = 1;
    twin_probe_npu.epochs[place].pre = twin_probe_npu.epochs[place].core = 0;
    twin_probe_npu.epochs[place].post = 0;
    twin_probe_npu_read_cache(twin_probe_npu.cached);
    if (twin_probe_npu_used(block) > 0) {
        if (twin_probe_npu_counts_bursts())
            twin_probe_npu_start(twin_probe_npu_set_bursts());
        else
            twin_probe_npu_set_engines(block);
    }
    twin_probe_npu.epochs[place].from = twin_probe_advance();
}

/* What a callback does itself is in no phase, but for the start of counters: the NPU works meanwhile. */
void twin_probe_npu_epoch(LL_ATON_RT_Callbacktype_t type, const NN_Instance_TypeDef *instance,
                          const EpochBlock_ItemTypeDef *block)
{
    const uint32_t now = twin_probe_advance();
    uint32_t place, used;
    (void)instance;
    if (block == 0 || type > LL_ATON_RT_Callbacktype_POST_END)
        return;  /* of the network, not of an epoch */
    if (type == LL_ATON_RT_Callbacktype_PRE_START) {
        twin_probe_npu_open(block);
        return;
    }
    place = twin_probe_npu_find(block);
    if (place == TWIN_PROBE_NPU_EPOCHS)
        return;
    used = twin_probe_npu_used(block);
    if (type == LL_ATON_RT_Callbacktype_POST_START) {
        twin_probe_npu.epochs[place].pre = now - twin_probe_npu.epochs[place].from;
        twin_probe_npu.epochs[place].from = now;
        if (!twin_probe_npu_counts_bursts())
            twin_probe_npu_start(used);
    } else if (type == LL_ATON_RT_Callbacktype_PRE_END) {
        uint32_t cache[8];
        for (uint32_t i = 0; i < used; i++)
            LL_Dbgtrc_Counter_Stop(0, (int)i);
        for (uint32_t i = 0; i < used; i++)
            twin_probe_npu.epochs[place].counted[i] = LL_Dbgtrc_Counter_Read(0, (int)i);
        twin_probe_npu_read_cache(cache);
        for (uint32_t i = 0; i < 8; i++)
            twin_probe_npu.epochs[place].cache[i] = cache[i] - twin_probe_npu.cached[i];
        twin_probe_npu.epochs[place].core = now - twin_probe_npu.epochs[place].from;
        twin_probe_npu.epochs[place].from = twin_probe_advance();
    } else {
        twin_probe_npu.epochs[place].post = now - twin_probe_npu.epochs[place].from;
        twin_probe_npu.epochs[place].open = 0;
    }
}

/* ---- what is sent ---- */
static void twin_probe_npu_send_epoch(uint32_t place)
{
    const EpochBlock_ItemTypeDef *block = twin_probe_npu.epochs[place].block;
    const uint32_t used = twin_probe_npu_used(block);
    char name[4] = " c0";
    twin_probe_head("epoch");
    twin_probe_number(" place=", place);
    twin_probe_number(" flags=", block->flags);
#ifdef LL_ATON_EB_DBG_INFO
    if (block->epoch_num >= 0) {
        twin_probe_number(" num=", (uint32_t)block->epoch_num);
        twin_probe_number(" last=", (uint32_t)block->last_epoch_num);
    }
    twin_probe_number(" in=", block->in_streng_mask);
    twin_probe_number(" out=", block->out_streng_mask);
#endif
    twin_probe_number(" pre=", twin_probe_npu.epochs[place].pre);
    twin_probe_number(" core=", twin_probe_npu.epochs[place].core);
    twin_probe_number(" post=", twin_probe_npu.epochs[place].post);
    twin_probe_number(" bursts=", twin_probe_npu_counts_bursts());
    for (uint32_t i = 0; i < used; i++) {  /* ca to cp, then ha to hh */
        name[2] = (char)('a' + i);
        twin_probe_text(name);
        twin_probe_number("=", twin_probe_npu.epochs[place].counted[i]);
    }
#ifdef TWIN_PROBE_NPU_CACHE
    name[1] = 'h';
    for (uint32_t i = 0; i < 8; i++) {
        name[2] = (char)('a' + i);
        twin_probe_text(name);
        twin_probe_number("=", twin_probe_npu.epochs[place].cache[i]);
    }
#endif
    twin_probe_tail();
}

void twin_probe_npu_end(void)
{
    twin_probe_advance();
    twin_probe_send_begin(twin_probe_npu.count, twin_probe_npu.lost);
    for (uint32_t i = 0; i < twin_probe_npu.count; i++)
        twin_probe_npu_send_epoch(i);
    twin_probe_head("end");
    twin_probe_tail();
    twin_probe.run++;
}

#endif
