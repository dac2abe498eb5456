/* The accelerator in front of the flash of F4 and L4: emptied while it is off (RM0368 and RM0432,
 * FLASH_ACR: ICRST and DCRST may be set only when the cache is disabled). It has no monitors. */
#include "stm32.h"
#include "variant.h"

#define ACR_ICEN (1u << 9)
#define ACR_DCEN (1u << 10)
#define ACR_ICRST (1u << 11)
#define ACR_DCRST (1u << 12)

void start_monitors(void)
{
}

void empty_part_caches(void)
{
    change(FLASH_ACR, ACR_ICEN | ACR_DCEN, 0);
    change(FLASH_ACR, 0, ACR_ICRST | ACR_DCRST);
    change(FLASH_ACR, ACR_ICRST | ACR_DCRST, ACR_ICEN | ACR_DCEN);
    barrier();
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
