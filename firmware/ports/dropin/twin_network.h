/* A network with its measuring firmware, for a project that brings clocks, start-up and a serial port
 * of its own. Written by `twin firmware export`; twin_network.c is the other file. */
#ifndef TWIN_NETWORK_H
#define TWIN_NETWORK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct twin_line {
    int32_t (*read)(void);        /* the next byte, or -1 while none waits */
    void (*write)(uint8_t byte);
    void (*flush)(void);          /* until the last byte has left; 0: not needed */
    uint32_t (*count)(void);      /* runs up, 32 bits; 0: the core's own (Cortex-M3 and larger) */
    uint32_t count_hz;            /* of `count`; 0: not known */
    uint32_t cpu_hz;              /* 0: not known */
    uint32_t counts_cycles;       /* 1: `count` counts the core's cycles */
    uint32_t simulated;           /* 1: this is an emulator, and so are its figures */
    void (*empty_caches)(void);   /* for cold runs; 0: there are none */
};

/* Answers the host for ever. Interrupts and other threads go on, and are counted as the network's. */
void twin_network_run(const struct twin_line *line);

#ifdef __cplusplus
}
#endif

#endif
