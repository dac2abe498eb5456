/* For ports of parts that lack something: functions that do nothing, to be named one by one, so
 * that leaving out is a statement. */
#ifndef TWIN_PORT_NOTHING_H
#define TWIN_PORT_NOTHING_H

#include "port.h"

static inline void do_nothing(void)
{
}

static inline uint32_t mask_nothing(void)
{
    return 0;
}

static inline void unmask_nothing(uint32_t state)
{
    (void)state;
}

static inline void mark_nothing(int32_t level)
{
    (void)level;
}

static inline void no_environment(struct wire_environment_reply *reply)
{
    (void)reply;
}

static inline void no_unique_id(uint8_t id[16])
{
    (void)id;
}

static inline uint32_t no_number(void)
{
    return 0;
}

static inline uint32_t no_events(const struct wire_counter **list)
{
    *list = 0;
    return 0;
}

static inline uint32_t select_nothing(const uint16_t *ids, uint32_t count)
{
    (void)ids;
    return count == 0;
}

static inline void read_nothing(uint32_t *values)
{
    (void)values;
}

#endif
