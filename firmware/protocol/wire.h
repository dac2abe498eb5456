/* The wire format between a host and a board. This header is the specification; SPEC.md explains
 * the bits. Little endian, naturally aligned, no padding. Freestanding C99. */
#ifndef TWIN_WIRE_H
#define TWIN_WIRE_H

#include <stdint.h>

#define WIRE_VERSION 1u          /* this specification */
#define WIRE_VERSION_OLDEST 1u   /* oldest one a board of this version still answers */
#define WIRE_FRAME_MAX 512u      /* bytes on the line, COBS and delimiter included */
#define WIRE_PAYLOAD_MAX 480u    /* bytes between header and checksum */
#define WIRE_BODY_MAX (sizeof(struct wire_header) + WIRE_PAYLOAD_MAX + 4u)
#define WIRE_TEXT_MAX 80u        /* bytes of a text command */

/* body = header, payload, CRC-32 (IEEE 802.3, reflected, as zlib) over header and payload */
struct wire_header {
    uint8_t type;       /* enum wire_type */
    uint8_t flags;      /* WIRE_REPLY or 0 */
    uint16_t sequence;  /* counts the sender's frames; a repeated frame keeps its number */
    uint16_t reply_to;  /* in a reply: sequence of the request; else 0 */
    uint16_t length;    /* payload bytes */
};

#define WIRE_REPLY 0x01u

/* Every type is >= 0x80, so that no frame can be mistaken for text (SPEC.md, Text mode). */
enum wire_type {
    WIRE_HELLO = 0x80, WIRE_IDENTIFY = 0x81, WIRE_COUNTERS = 0x82, WIRE_LAYER = 0x83,
    WIRE_LOAD = 0x84, WIRE_CONFIG = 0x85, WIRE_RUN = 0x86, WIRE_SAMPLES = 0x87,
    WIRE_CHECKSUM = 0x88, WIRE_OVERHEAD = 0x89, WIRE_STATUS = 0x8a, WIRE_IDLE = 0x8b,
    WIRE_READ = 0x8c, WIRE_ENVIRONMENT = 0x8d, WIRE_TIME = 0x8e, WIRE_BYE = 0x8f,
    WIRE_LOG = 0x90,   /* board to host, never asked for, never during a run */
    WIRE_ERROR = 0xff  /* a reply */
};

enum wire_error {
    WIRE_E_TYPE = -1,         /* no such request; detail: its type */
    WIRE_E_LENGTH = -2,       /* payload too short or too long; detail: bytes expected */
    WIRE_E_VERSION = -3,      /* detail: the board's version */
    WIRE_E_SESSION = -4,      /* no HELLO yet: the board has (re)started */
    WIRE_E_ARGUMENT = -5,     /* detail: offset of the field in the payload */
    WIRE_E_UNSUPPORTED = -6,  /* the port lacks it; detail: the feature bit asked for */
    WIRE_E_INPUT = -7,        /* RUN before the input was loaded; detail: bytes loaded */
    WIRE_E_OFFSET = -8,       /* LOAD left a gap, SAMPLES are gone; detail: the offset to go on at */
    WIRE_E_INTERNAL = -9      /* detail: place in the firmware */
};

enum wire_feature {
    WIRE_F_CYCLES = 1 << 0,        /* a CPU cycle counter (DWT CYCCNT or PMU CCNTR) */
    WIRE_F_TIMER = 1 << 1,         /* a timer stands in for it */
    WIRE_F_PMU = 1 << 2,           /* Armv8.1-M event counters */
    WIRE_F_DWT8 = 1 << 3,          /* DWT event counters of 8 bits: they wrap every 256 events */
    WIRE_F_CACHE_MONITOR = 1 << 4, /* counters of a vendor's cache controller */
    WIRE_F_COLD = 1 << 5,          /* can empty the caches */
    WIRE_F_MASK = 1 << 6,          /* can mask interrupts around a layer */
    WIRE_F_MARK = 1 << 7,          /* a pin marks runs or layers */
    WIRE_F_ENVIRONMENT = 1 << 8,   /* tells temperature, supply or clock source */
    WIRE_F_TEXT = 1 << 9,          /* speaks the MLPerf Tiny text commands */
    WIRE_F_SIMULATED = 1 << 10     /* a virtual board: every counter is simulated */
};

enum wire_clock {  /* what a counter's value is counted in */
    WIRE_C_EVENTS = 0, WIRE_C_CPU = 1, WIRE_C_TIMER = 2, WIRE_C_BUS = 3, WIRE_C_NPU = 4
};

/* Counter ids. 0x1000 + n is event n of the Armv8.1-M PMU. */
enum wire_counter_id {
    WIRE_N_CYCLES = 1, WIRE_N_TIMER = 2, WIRE_N_CHECKSUM = 3 /* value: CRC-32 of the output */,
    WIRE_N_INTERRUPTS = 4, WIRE_N_INSTRUCTIONS = 5,
    WIRE_N_DWT_CPI = 0x10, WIRE_N_DWT_EXCEPTION = 0x11, WIRE_N_DWT_SLEEP = 0x12,
    WIRE_N_DWT_LSU = 0x13, WIRE_N_DWT_FOLD = 0x14,
    WIRE_N_ICACHE_HIT = 0x20, WIRE_N_ICACHE_MISS = 0x21, WIRE_N_DCACHE_READ_HIT = 0x22,
    WIRE_N_DCACHE_READ_MISS = 0x23, WIRE_N_DCACHE_WRITE_HIT = 0x24,
    WIRE_N_DCACHE_WRITE_MISS = 0x25, WIRE_N_XIP_ACCESS = 0x26, WIRE_N_XIP_HIT = 0x27,
    WIRE_N_PMU = 0x1000
};

/* Places in `layer` that are not layers. */
#define WIRE_L_INFERENCE 0xffffu  /* the whole inference */
#define WIRE_L_SETUP 0xfffeu      /* preparing the model once */

/* ---- payloads: request, then reply; a request not listed has an empty payload ---- */

struct wire_hello {            /* request; these 12 bytes never change in any version */
    uint16_t version;
    uint16_t oldest;           /* oldest version the host understands */
    uint32_t features;         /* WIRE_F_* the host knows */
    uint32_t session;          /* chosen by the host, not 0; the current one resumes */
};
struct wire_hello_reply {
    uint16_t version;
    uint16_t oldest;
    uint32_t features;         /* WIRE_F_* of the board */
    uint32_t session;
    uint32_t resumed;          /* 1: input, samples and numbering were kept */
};

struct wire_identify_reply {
    uint32_t core_id;          /* CPUID register or 0 */
    uint32_t cpu_hz;           /* as configured, 0: not known */
    uint32_t timer_hz;         /* 0: no timer */
    uint32_t features;
    uint32_t input_bytes;
    uint32_t output_bytes;
    uint32_t arena_bytes;
    uint32_t weights_bytes;
    uint32_t sample_capacity;  /* records the board keeps */
    uint16_t layers;
    uint16_t counters;         /* entries COUNTERS lists */
    uint16_t counters_at_once; /* events one run can count beside the cycles */
    uint16_t text_model;       /* 0, or the MLPerf Tiny model: 1 ic, 2 kws, 3 vww, 4 ad, 5 sww */
    uint8_t unique_id[16];     /* of the part; zero where it has none */
    uint8_t model_sha256[32];  /* of the model file */
    uint8_t build_sha256[32];  /* of every source and option the image was built from */
    char port[24];             /* texts end in at least one NUL */
    char model[32];
    char compiler[64];
};

struct wire_counters {         /* request */
    uint16_t first;
    uint16_t reserved;
};
struct wire_counter {
    uint16_t id;               /* enum wire_counter_id */
    uint8_t clock;             /* enum wire_clock */
    uint8_t bits;              /* width of the register, 64 for what software extends */
    char name[20];
};
struct wire_counters_reply {
    uint16_t first;
    uint16_t count;            /* entries that follow, at most 19 */
    struct wire_counter entries[];
};

struct wire_layer {            /* request */
    uint16_t index;
    uint16_t reserved;
};
struct wire_layer_reply {
    uint16_t index;
    uint16_t model_layer;      /* index in the model file */
    uint32_t output_offset;    /* of its output in the arena */
    uint32_t output_bytes;
    char name[64];
};

struct wire_load {             /* request; data follows */
    uint32_t offset;
};
struct wire_load_reply {
    uint32_t next;             /* bytes received without a gap: go on here */
    uint32_t checksum;         /* CRC-32 of the input once complete, else 0 */
};

enum wire_config_flag {
    WIRE_CONFIG_COLD = 1 << 0,      /* empty the caches before every run */
    WIRE_CONFIG_MASK = 1 << 1,      /* mask interrupts around every layer; else count them */
    WIRE_CONFIG_LAYERS = 1 << 2,    /* sample every layer; else the whole inference only */
    WIRE_CONFIG_VERIFY = 1 << 3,    /* checksum every layer's output (outside its counters) */
    WIRE_CONFIG_MARK_RUN = 1 << 4,  /* pin high from start to end of the block of runs */
    WIRE_CONFIG_MARK_LAYER = 1 << 5 /* pin toggles at every layer's start and at the end */
};
#define WIRE_EVENTS_MAX 8u
struct wire_config {           /* request; forgets the samples, runs the set-up again */
    uint32_t warmup;           /* runs that leave no sample, before the next RUN */
    uint16_t flags;            /* WIRE_CONFIG_* */
    uint16_t repeat_layer;     /* the only layer repeated, or 0xffff: none */
    uint32_t repeat;           /* how often that layer runs within each run, >= 1 */
    uint16_t stop_layer;       /* last layer run, or 0xffff: all */
    uint16_t events;           /* entries used below, at most counters_at_once */
    uint16_t event[WIRE_EVENTS_MAX]; /* ids of the counters of this pass */
};
struct wire_config_reply {
    uint64_t setup_cycles;     /* of clock `setup_clock` */
    uint32_t setup_clock;      /* enum wire_clock */
    uint32_t samples_per_run;
};

struct wire_run {              /* request */
    uint32_t first_run;        /* number of the first run in the samples */
    uint32_t runs;             /* >= 1; the board ends early when its samples are full */
};
struct wire_run_reply {
    uint32_t first_run;
    uint32_t done;             /* runs made; a byte on the line also ends the block early */
    uint32_t samples_next;     /* number of the sample after the last one kept */
    uint32_t checksum;         /* CRC-32 of the last output */
    uint32_t mismatches;       /* runs since CONFIG whose output was not the first run's */
    uint32_t reserved;
};

struct wire_samples {          /* request; samples before `first` are forgotten */
    uint32_t first;
};
struct wire_sample {
    uint32_t run;
    uint16_t layer;            /* index in the call list or WIRE_L_* */
    uint8_t counter;           /* place in the COUNTERS list */
    uint8_t clock;             /* enum wire_clock */
    uint64_t value;
};
#define WIRE_SAMPLES_MAX 29u
struct wire_samples_reply {
    uint32_t first;            /* number of the first sample that follows; all count from 0 */
    uint16_t count;            /* 0: there are no more */
    uint16_t reserved;
    uint32_t next;             /* samples_next of the board */
    uint32_t reserved2;
    struct wire_sample samples[];
};

struct wire_checksum_reply {
    uint32_t input;            /* CRC-32 */
    uint32_t output;
    uint32_t weights;          /* over all constants, as the image holds them */
    uint32_t mismatches;
};

struct wire_overhead {         /* request */
    uint32_t reads;            /* how often to take a sample of nothing, 1 to 10000 */
};
struct wire_overhead_reply {   /* cycles between two samples with nothing in between */
    uint32_t reads;
    uint32_t clock;
    uint32_t least;
    uint32_t most;
    uint64_t sum;
};

struct wire_status_reply {
    uint32_t session;
    uint32_t loaded_bytes;
    uint32_t runs;             /* since CONFIG, warm-up apart */
    uint32_t samples_first;    /* oldest sample kept */
    uint32_t samples_next;
    uint32_t frames_good;      /* since start */
    uint32_t frames_bad;       /* wrong checksum, length or coding: dropped without an answer */
    uint32_t text;             /* 1 while text commands are accepted */
};

enum wire_space { WIRE_S_INPUT = 0, WIRE_S_OUTPUT = 1, WIRE_S_ARENA = 2 };
struct wire_read {             /* request */
    uint32_t space;            /* enum wire_space */
    uint32_t offset;
    uint32_t length;           /* at most WIRE_PAYLOAD_MAX - 8 */
};
struct wire_read_reply {       /* data follows */
    uint32_t offset;
    uint32_t length;
};

#define WIRE_UNKNOWN INT32_MIN
struct wire_environment_reply {
    int32_t temperature_mc;    /* die, millidegree Celsius, or WIRE_UNKNOWN */
    int32_t supply_mv;         /* or WIRE_UNKNOWN */
    int32_t clock_source;      /* 0 internal oscillator, 1 crystal, 2 external, or WIRE_UNKNOWN */
    uint32_t cpu_hz;
};

struct wire_time {             /* request */
    uint32_t spin_us;          /* busy time before the answer by the board's clock, <= 10 s */
};
struct wire_time_reply {
    uint64_t ticks;            /* spent: round trip(spin) - round trip(0) checks hz */
    uint32_t hz;
    uint32_t clock;            /* enum wire_clock */
};

struct wire_error_reply {
    uint8_t type;              /* of the request */
    uint8_t reserved;
    int16_t code;              /* enum wire_error */
    uint32_t detail;
};

#define WIRE_SIZE(type, bytes) \
    typedef char wire_size_of_##type[sizeof(struct type) == (bytes) ? 1 : -1]
WIRE_SIZE(wire_header, 8);
WIRE_SIZE(wire_hello, 12);
WIRE_SIZE(wire_hello_reply, 16);
WIRE_SIZE(wire_identify_reply, 244);
WIRE_SIZE(wire_counter, 24);
WIRE_SIZE(wire_counters_reply, 4);
WIRE_SIZE(wire_layer_reply, 76);
WIRE_SIZE(wire_load_reply, 8);
WIRE_SIZE(wire_config, 32);
WIRE_SIZE(wire_config_reply, 16);
WIRE_SIZE(wire_run, 8);
WIRE_SIZE(wire_run_reply, 24);
WIRE_SIZE(wire_sample, 16);
WIRE_SIZE(wire_samples_reply, 16);
WIRE_SIZE(wire_checksum_reply, 16);
WIRE_SIZE(wire_overhead_reply, 24);
WIRE_SIZE(wire_status_reply, 32);
WIRE_SIZE(wire_read, 12);
WIRE_SIZE(wire_read_reply, 8);
WIRE_SIZE(wire_environment_reply, 16);
WIRE_SIZE(wire_time_reply, 16);
WIRE_SIZE(wire_error_reply, 8);
#undef WIRE_SIZE

#endif
