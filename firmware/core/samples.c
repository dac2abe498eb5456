#include "samples.h"

typedef char capacity_is_a_power_of_two[(SAMPLE_CAPACITY & (SAMPLE_CAPACITY - 1u)) == 0 ? 1 : -1];

static struct wire_sample ring[SAMPLE_CAPACITY];
static uint32_t first, next;

void clear_samples(void)
{
    first = next = 0;
}

uint32_t free_samples(void)
{
    return SAMPLE_CAPACITY - (next - first);
}

void add_sample(const struct wire_sample *sample)
{
    if (free_samples() > 0)
        ring[next++ % SAMPLE_CAPACITY] = *sample;
}

uint32_t first_sample(void)
{
    return first;
}

uint32_t next_sample(void)
{
    return next;
}

void forget_samples(uint32_t before)
{
    first = before;
}

const struct wire_sample *sample_at(uint32_t number)
{
    return &ring[number % SAMPLE_CAPACITY];
}
