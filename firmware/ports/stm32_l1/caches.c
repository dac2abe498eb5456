/* STM32 with the caches of a Cortex-M7: the core's own registers empty them, nothing counts them. */
#include "stm32.h"

void start_monitors(void)
{
}

void empty_part_caches(void)
{
    clean_invalidate_caches();
}

uint32_t part_events(const struct wire_counter **list)
{
    return core_events(list);
}

uint32_t select_part_events(const uint16_t *ids, uint32_t count)
{
    return select_core_events(ids, count);
}

void read_part_events(uint32_t *values)
{
    read_core_events(values);
}

void read_part_environment(struct wire_environment_reply *reply)
{
    reply->clock_source = 0;
}
