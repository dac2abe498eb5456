/* What a board must provide: callbacks and sizes in one const struct.
 *
 * A port is one C file that defines the functions port_table.h names and includes it at the end;
 * a function that is missing does not compile. Ports run polled or by interrupt: bytes reach the
 * core through `receive_byte`, from `poll` or from an interrupt handler. */
#ifndef TWIN_PORT_H
#define TWIN_PORT_H

#include <stdint.h>

#include "wire.h"

struct port {
    const char *name;
    void (*start)(void);                  /* clocks, caches, line; then everything else works */
    uint32_t (*features)(void);           /* WIRE_F_* without WIRE_F_TEXT */
    uint32_t (*cpu_hz)(void);             /* 0: not known */

    void (*poll)(void);                   /* hand over bytes that wait; nothing with interrupts */
    void (*idle)(void);                   /* sleep until a byte may wait; may return early */
    void (*send)(uint8_t byte);           /* waits while the line is busy */
    void (*flush)(void);                  /* until the last byte has left the line */

    uint32_t (*count)(void);              /* the running counter below, modulo 2^32 */
    const struct wire_counter *(*counter)(void);  /* what `count` counts */
    uint32_t (*counter_hz)(void);
    uint32_t (*events)(const struct wire_counter **list);  /* further counters; returns how many */
    uint32_t events_at_once;
    uint32_t (*select)(const uint16_t *ids, uint32_t count);  /* 1: done, 0: cannot */
    void (*read)(uint32_t *values);       /* of the selected events, in their order */

    void (*place_weights)(void);          /* copy the weights to the memory they are linked for */
    void (*empty_caches)(void);           /* clean and invalidate whatever there is */
    uint32_t (*mask)(void);               /* no interrupts from here ... */
    void (*unmask)(uint32_t state);       /* ... to here */
    void (*mark)(int32_t level);          /* a pin for power traces; -1: toggle */
    void (*environment)(struct wire_environment_reply *reply);  /* preset to unknown */
    void (*unique_id)(uint8_t id[16]);    /* preset to zero */
    uint32_t (*core_id)(void);
};

extern const struct port port;

/* Called by ports: a byte has arrived (from any context), an interrupt has run. */
void receive_byte(uint8_t byte);
extern volatile uint32_t interrupts_seen;

/* Where a port's start-up code goes; returns only on a port whose input can end. */
int run_firmware(void);

#endif
