#include "probes.h"

/* So many words a turn that the loop around them hardly counts. */
#define EIGHT(at, what) \
    what((at) + 0) what((at) + 1) what((at) + 2) what((at) + 3) \
    what((at) + 4) what((at) + 5) what((at) + 6) what((at) + 7)
#define ALL(what) EIGHT(0, what) EIGHT(8, what) EIGHT(16, what) EIGHT(24, what)
#define LOAD(at) (void)word[at];
#define STORE(at) word[at] = 0;

void stream_read(const void *room, uint32_t extent, uint32_t laps)
{
    for (; laps > 0; laps--) {
        const volatile uint32_t *word = room;
        for (uint32_t left = extent / 128u; left > 0; left--, word += 32) {
            ALL(LOAD)
        }
    }
}

void stream_write(void *room, uint32_t extent, uint32_t laps)
{
    for (; laps > 0; laps--) {
        volatile uint32_t *word = room;
        for (uint32_t left = extent / 128u; left > 0; left--, word += 32) {
            ALL(STORE)
        }
    }
}
