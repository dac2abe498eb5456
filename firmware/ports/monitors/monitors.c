/* One list of what a part and its core count; what is chosen is parted again. */
#include "monitors.h"

static struct wire_counter listed[MONITORS_MOST + 8u];
static uint32_t own_count, core_count;
static uint32_t (*read_own)(uint32_t place);

static uint8_t chosen[WIRE_EVENTS_MAX];  /* place in the list above */
static uint32_t chosen_count;

void join_monitors(const struct wire_counter *own, uint32_t count, uint32_t (*read)(uint32_t place))
{
    const struct wire_counter *core;
    read_own = read;
    own_count = count;
    core_count = core_events(&core);
    for (uint32_t i = 0; i < own_count; i++)
        listed[i] = own[i];
    for (uint32_t i = 0; i < core_count; i++)
        listed[own_count + i] = core[i];
}

uint32_t part_events(const struct wire_counter **list)
{
    *list = listed;
    return own_count + core_count;
}

static uint32_t find(uint16_t id)
{
    uint32_t place = 0;
    while (place < own_count + core_count && listed[place].id != id)
        place++;
    return place;
}

uint32_t select_part_events(const uint16_t *ids, uint32_t count)
{
    uint16_t core_ids[WIRE_EVENTS_MAX];
    uint32_t core = 0;
    for (uint32_t i = 0; i < count; i++) {
        chosen[i] = (uint8_t)find(ids[i]);
        if (chosen[i] >= own_count)
            core_ids[core++] = ids[i];
    }
    chosen_count = count;
    return select_core_events(core_ids, core);
}

void read_part_events(uint32_t *values)
{
    uint32_t core_values[WIRE_EVENTS_MAX];
    uint32_t core = 0;
    read_core_events(core_values);
    for (uint32_t i = 0; i < chosen_count; i++)
        values[i] = chosen[i] < own_count ? read_own(chosen[i]) : core_values[core++];
}
