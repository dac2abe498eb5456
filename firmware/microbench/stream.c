#include "probes.h"

void stream_read(const void *room, uint32_t extent, uint32_t laps)
{
    for (; laps > 0; laps--) {
        const volatile uint32_t *word = room;
        for (uint32_t left = extent / 32u; left > 0; left--, word += 8) {
            (void)word[0];
            (void)word[1];
            (void)word[2];
            (void)word[3];
            (void)word[4];
            (void)word[5];
            (void)word[6];
            (void)word[7];
        }
    }
}

void stream_write(void *room, uint32_t extent, uint32_t laps)
{
    for (; laps > 0; laps--) {
        volatile uint32_t *word = room;
        for (uint32_t left = extent / 32u; left > 0; left--, word += 8) {
            word[0] = 0;
            word[1] = 0;
            word[2] = 0;
            word[3] = 0;
            word[4] = 0;
            word[5] = 0;
            word[6] = 0;
            word[7] = 0;
        }
    }
}
