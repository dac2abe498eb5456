/* twin_probe.h: times the layers of an inference you run yourself, under any library.
 *
 * One file, C99 or C++11, no heap. Include it where marks are set; in exactly one C or C++ file
 * define TWIN_PROBE_HERE before it, and TWIN_PROBE_PUT(byte) as what sends a byte:
 *
 *     #define TWIN_PROBE_HERE
 *     #define TWIN_PROBE_PUT(byte) uart_send(byte)
 *     #define TWIN_PROBE_HZ SystemCoreClock
 *     #include "twin_probe.h"
 *
 *     twin_probe_begin("kws");
 *     twin_probe_layer("CONV_2D");   before each layer; or _enter(name) and _leave() around it
 *     twin_probe_end();              sends; nothing is sent before
 *
 * `twin measure MODEL -b BOARD --port DEVICE --probe` listens; `twin import probe FILE` reads what a
 * terminal program has kept. Settings, all optional, before the include:
 *
 *     TWIN_PROBE_HZ        frequency of the counter; 0 (not known) by default
 *     TWIN_PROBE_COUNT()   a counter of 32 bits that runs up and wraps, where the core has none
 *                          (Cortex-M0, M0+, M23: a timer); TWIN_PROBE_UNIT then says "ticks"
 *     TWIN_PROBE_LAYERS    marks kept of an inference, 160 by default: 12 bytes each on 32 bits
 *     TWIN_PROBE_COBS      frames with a checksum of 32 bits (firmware/protocol/SPEC.md, type A0)
 *                          in place of lines of text
 *     TWIN_PROBE_TFLM      class TwinProbe, a profiler of TFLite Micro's interpreter
 *
 * Names must stay valid until twin_probe_end. Not for interrupts, nor for two threads at once. */
#ifndef TWIN_PROBE_H
#define TWIN_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void twin_probe_begin(const char *network);
void twin_probe_layer(const char *name);  /* ends the layer before */
void twin_probe_enter(const char *name);  /* begins a layer; one within another is part of it */
void twin_probe_leave(void);              /* what comes until the next enter is of no layer */
void twin_probe_end(void);

#ifdef __cplusplus
}
#endif

/* ST's observer: ai_platform_observer_register(net, twin_probe_on_node, 0, AI_OBSERVER_PRE_EVT |
 * AI_OBSERVER_POST_EVT) after this line, outside functions, with ai_platform_interface.h included. */
#define TWIN_PROBE_ST_OBSERVER()                                                                \
    static ai_u32 twin_probe_on_node(const ai_handle cookie, const ai_u32 flags,                \
                                     const ai_observer_node *node)                              \
    {                                                                                           \
        (void)cookie;                                                                           \
        (void)node;                                                                             \
        if (flags & AI_OBSERVER_PRE_EVT)                                                        \
            twin_probe_enter("node");                                                           \
        else if (flags & AI_OBSERVER_POST_EVT)                                                  \
            twin_probe_leave();                                                                 \
        return 0;                                                                               \
    }

/* Epochs of ST's Neural-ART, waiting for the accelerator included, in the same way:
 * LL_ATON_RT_SetEpochCallback(twin_probe_on_epoch, instance), with ll_aton_rt_user_api.h included. */
#define TWIN_PROBE_ATON()                                                                       \
    static void twin_probe_on_epoch(LL_ATON_RT_Callbacktype_t type,                             \
                                    const NN_Instance_TypeDef *instance,                        \
                                    const LL_ATON_RT_EpochBlockItem_t *block)                   \
    {                                                                                           \
        (void)instance;                                                                         \
        (void)block;                                                                            \
        if (type == LL_ATON_RT_Callbacktype_PRE_START)                                          \
            twin_probe_enter("epoch");                                                          \
        else if (type == LL_ATON_RT_Callbacktype_POST_END)                                      \
            twin_probe_leave();                                                                 \
    }

#if defined(TWIN_PROBE_TFLM) && defined(__cplusplus)
#include "tensorflow/lite/micro/micro_profiler_interface.h"
/* MicroInterpreter(model, resolver, arena, size, nullptr, &probe); begin and end go around Invoke. */
class TwinProbe : public tflite::MicroProfilerInterface {
  public:
    uint32_t BeginEvent(const char *tag) override
    {
        twin_probe_enter(tag);
        return 0;
    }
    void EndEvent(uint32_t) override
    {
        twin_probe_leave();
    }
};
#endif

#endif

#if defined(TWIN_PROBE_HERE) && !defined(TWIN_PROBE_DEFINED)
#define TWIN_PROBE_DEFINED

#ifndef TWIN_PROBE_PUT
#error "define TWIN_PROBE_PUT(byte) as what sends a byte, such as uart_send(byte)"
#endif
#ifndef TWIN_PROBE_HZ
#define TWIN_PROBE_HZ 0
#endif
#ifndef TWIN_PROBE_LAYERS
#define TWIN_PROBE_LAYERS 160
#endif
#define TWIN_PROBE_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* ---- the counter ---- */
#ifdef TWIN_PROBE_COUNT
#ifndef TWIN_PROBE_UNIT
#define TWIN_PROBE_UNIT "ticks"
#endif
static void twin_probe_start(void) {}
static inline uint32_t twin_probe_now(void) { return (uint32_t)(TWIN_PROBE_COUNT()); }
#else
#define TWIN_PROBE_UNIT "cycles"
#if defined(__ARM_ARCH) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' \
    && (__ARM_ARCH == 7 || defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__))
/* DWT_CYCCNT: Armv7-M and Armv8-M Architecture Reference Manuals (DDI 0403, DDI 0553). */
static void twin_probe_start(void)
{
    TWIN_PROBE_REGISTER(0xe000edfc) |= 1u << 24;       /* DEMCR.TRCENA */
    TWIN_PROBE_REGISTER(0xe0001fb0) = 0xc5acce55u;     /* DWT_LAR: Cortex-M7 locks it */
    TWIN_PROBE_REGISTER(0xe0001000) |= 1u;             /* DWT_CTRL.CYCCNTENA */
}
static inline uint32_t twin_probe_now(void) { return TWIN_PROBE_REGISTER(0xe0001004); }
#elif defined(ESP_PLATFORM)
#include "esp_cpu.h"
static void twin_probe_start(void) {}
static inline uint32_t twin_probe_now(void) { return (uint32_t)esp_cpu_get_cycle_count(); }
#elif defined(__riscv)
static void twin_probe_start(void) {}
static inline uint32_t twin_probe_now(void)
{
    uint32_t value;
    __asm__ volatile("csrr %0, mcycle" : "=r"(value));
    return value;
}
#elif defined(__XTENSA__)
static void twin_probe_start(void) {}
static inline uint32_t twin_probe_now(void)
{
    uint32_t value;
    __asm__ volatile("rsr.ccount %0" : "=a"(value));
    return value;
}
#else
#error "this core has no cycle counter: define TWIN_PROBE_COUNT() and TWIN_PROBE_HZ"
#endif
#endif

/* ---- marks ---- */
static struct {
    struct {
        const char *name;
        uint32_t begin, span;
    } layers[TWIN_PROBE_LAYERS];
    const char *network;
    uint64_t total;
    uint32_t last, count, depth, run, cost, open, started, lost;
} twin_probe;

/* Reads the counter; adds what has passed to the total, so that only spans between marks may not
 * wrap. */
static uint32_t twin_probe_advance(void)
{
    const uint32_t now = twin_probe_now();
    twin_probe.total += (uint32_t)(now - twin_probe.last);
    twin_probe.last = now;
    return now;
}

static void twin_probe_close(uint32_t now)
{
    if (twin_probe.open) {
        twin_probe.layers[twin_probe.count].span = now - twin_probe.layers[twin_probe.count].begin;
        twin_probe.count++;
        twin_probe.open = 0;
    }
}

static void twin_probe_open(const char *name, uint32_t now)
{
    if (twin_probe.count == TWIN_PROBE_LAYERS) {
        twin_probe.lost++;
        return;
    }
    twin_probe.layers[twin_probe.count].name = name;
    twin_probe.layers[twin_probe.count].begin = now;
    twin_probe.open = 1;
}

void twin_probe_begin(const char *network)
{
    if (!twin_probe.started) {
        uint32_t before;
        twin_probe_start();
        before = twin_probe_now();
        twin_probe.cost = twin_probe_now() - before;
        twin_probe.started = 1;
    }
    twin_probe.network = network;
    twin_probe.count = twin_probe.depth = twin_probe.open = twin_probe.lost = 0;
    twin_probe.total = 0;
    twin_probe.last = twin_probe_now();
}

void twin_probe_layer(const char *name)
{
    const uint32_t now = twin_probe_advance();
    twin_probe_close(now);
    twin_probe_open(name, now);
}

void twin_probe_enter(const char *name)
{
    if (twin_probe.depth++ == 0)
        twin_probe_layer(name);
}

void twin_probe_leave(void)
{
    const uint32_t now = twin_probe_advance();
    if (twin_probe.depth > 0 && --twin_probe.depth == 0)
        twin_probe_close(now);
}

/* ---- what is sent: bytes of a record, as a line of text or as a frame ---- */
static char twin_probe_plain(char c)
{
    return c > ' ' && c < 0x7f && c != '*' ? c : '_';
}

#ifndef TWIN_PROBE_COBS

static uint32_t twin_probe_sum;

static void twin_probe_char(char c)
{
    twin_probe_sum ^= (uint8_t)c;
    TWIN_PROBE_PUT((uint8_t)c);
}

static void twin_probe_text(const char *text)
{
    while (*text)
        twin_probe_char(*text++);
}

static void twin_probe_word(const char *text)
{
    if (!text || !*text)
        text = "node";
    while (*text)
        twin_probe_char(twin_probe_plain(*text++));
}

static void twin_probe_number(const char *before, uint64_t value)
{
    char digits[20];
    uint32_t count = 0;
    twin_probe_text(before);
    do
        digits[count++] = (char)('0' + value % 10u);
    while (value /= 10u);
    while (count > 0)
        twin_probe_char(digits[--count]);
}

static void twin_probe_head(const char *kind)
{
    TWIN_PROBE_PUT((uint8_t)'@');
    twin_probe_sum = 0;
    twin_probe_text("twin 1 ");
    twin_probe_text(kind);
    twin_probe_number(" run=", twin_probe.run);
}

static void twin_probe_tail(void)
{
    static const char digits[] = "0123456789ABCDEF";
    const uint32_t sum = twin_probe_sum;
    TWIN_PROBE_PUT((uint8_t)'*');
    TWIN_PROBE_PUT((uint8_t)digits[sum >> 4 & 15u]);
    TWIN_PROBE_PUT((uint8_t)digits[sum & 15u]);
    TWIN_PROBE_PUT((uint8_t)'\r');
    TWIN_PROBE_PUT((uint8_t)'\n');
}

static void twin_probe_send_begin(uint32_t layers, uint32_t lost)
{
    twin_probe_head("begin");
    twin_probe_number(" hz=", (uint64_t)(TWIN_PROBE_HZ));
#ifdef TWIN_PROBE_NPU_HZ
    twin_probe_number(" npu=", (uint64_t)(TWIN_PROBE_NPU_HZ));
#endif
    twin_probe_text(" unit=" TWIN_PROBE_UNIT);
    twin_probe_number(" layers=", layers);
    twin_probe_number(" lost=", lost);
    twin_probe_number(" total=", twin_probe.total);
    twin_probe_number(" mark=", twin_probe.cost);
    twin_probe_text(" name=");
    twin_probe_word(twin_probe.network);
    twin_probe_tail();
}

static void twin_probe_send(void)
{
    twin_probe_send_begin(twin_probe.count, twin_probe.lost);
    for (uint32_t i = 0; i < twin_probe.count; i++) {
        twin_probe_head("layer");
        twin_probe_number(" place=", i);
        twin_probe_number(" count=", twin_probe.layers[i].span);
        twin_probe_text(" name=");
        twin_probe_word(twin_probe.layers[i].name);
        twin_probe_tail();
    }
    twin_probe_head("end");
    twin_probe_tail();
}

#else

/* A frame: header (type, 0, sequence, 0, length), record, CRC-32; COBS, ended by zero. A record is
 * kind (0 begin, 1 layer, 2 end), 0, then words of 32 bits, low byte first, then a name. */
#define TWIN_PROBE_NAME 64
static uint8_t twin_probe_frame[8 + 36 + TWIN_PROBE_NAME + 4];

static void twin_probe_word(uint8_t *to, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8u * i);
}

static void twin_probe_frame_out(uint32_t length)
{
    uint32_t start = 0;
    TWIN_PROBE_PUT((uint8_t)0);
    while (start <= length) {  /* frames are shorter than 254 bytes: no long blocks */
        uint32_t end = start;
        while (end < length && twin_probe_frame[end])
            end++;
        TWIN_PROBE_PUT((uint8_t)(end - start + 1u));
        for (; start < end; start++)
            TWIN_PROBE_PUT(twin_probe_frame[start]);
        start++;
    }
    TWIN_PROBE_PUT((uint8_t)0);
}

static void twin_probe_record(uint32_t kind, const uint32_t *words, uint32_t count,
                              const char *name)
{
    static uint16_t sequence;
    uint32_t length = 10, crc = 0xffffffffu;
    for (uint32_t i = 0; i < 10; i++)
        twin_probe_frame[i] = 0;
    twin_probe_frame[0] = 0xa0;
    twin_probe_word(twin_probe_frame + 2, sequence++, 2);
    twin_probe_frame[8] = (uint8_t)kind;
    for (uint32_t i = 0; i < count; i++, length += 4)
        twin_probe_word(twin_probe_frame + length, words[i], 4);
    for (uint32_t i = 0; name && name[i] && i < TWIN_PROBE_NAME - 8u; i++)
        twin_probe_frame[length++] = (uint8_t)twin_probe_plain(name[i]);
    twin_probe_word(twin_probe_frame + 6, length - 8u, 2);
    for (uint32_t i = 0; i < length; i++) {
        crc ^= twin_probe_frame[i];
        for (uint32_t bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1u ? 0xedb88320u : 0u);
    }
    twin_probe_word(twin_probe_frame + length, ~crc, 4);
    twin_probe_frame_out(length + 4u);
}

static void twin_probe_send(void)
{
    uint32_t words[8];
    const char unit = TWIN_PROBE_UNIT[0];
    words[0] = twin_probe.run;
    words[1] = (uint32_t)(TWIN_PROBE_HZ);
    words[2] = unit == 'c';
    words[3] = twin_probe.count;
    words[4] = twin_probe.lost;
    words[5] = (uint32_t)twin_probe.total;
    words[6] = (uint32_t)(twin_probe.total >> 32);
    words[7] = twin_probe.cost;
    twin_probe_record(0, words, 8, twin_probe.network);
    for (uint32_t i = 0; i < twin_probe.count; i++) {
        words[1] = i;
        words[2] = twin_probe.layers[i].span;
        twin_probe_record(1, words, 3, twin_probe.layers[i].name);
    }
    twin_probe_record(2, words, 1, 0);
}

#endif

void twin_probe_end(void)
{
    const uint32_t now = twin_probe_advance();
    twin_probe_close(now);
    twin_probe_send();
    twin_probe.run++;
}

#endif
