/* Pins of an STM32, and what a variant provides. GPIO registers are the same on every family. */
#ifndef TWIN_STM32_H
#define TWIN_STM32_H

#include "cortex_m.h"

#define PIN_OUTPUT 1u
#define PIN_ALTERNATE 2u

/* `block` is the base address of the GPIO block; its clock is on already. */
static inline void use_pin(uint32_t block, uint32_t pin, uint32_t mode, uint32_t function)
{
    volatile uint32_t *const moder = &REGISTER(block);
    volatile uint32_t *const speed = &REGISTER(block + 0x08);
    volatile uint32_t *const alternate = &REGISTER(block + 0x20 + 4u * (pin / 8u));
    const uint32_t nibble = 4u * (pin % 8u);
    *alternate = (*alternate & ~(15u << nibble)) | function << nibble;
    *speed = (*speed & ~(3u << 2u * pin)) | 2u << 2u * pin;
    *moder = (*moder & ~(3u << 2u * pin)) | mode << 2u * pin;
}

static inline void set_pin(uint32_t block, uint32_t pin, int32_t level)
{
    const uint32_t now = REGISTER(block + 0x14) >> pin & 1u;  /* ODR */
    const uint32_t wanted = level < 0 ? !now : level > 0;
    REGISTER(block + 0x18) = 1u << (wanted ? pin : pin + 16u);  /* BSRR */
}

static inline void wait_for(uint32_t address, uint32_t mask, uint32_t value)
{
    while ((REGISTER(address) & mask) != value)
        ;
}

static inline void change(uint32_t address, uint32_t clear, uint32_t set)
{
    REGISTER(address) = (REGISTER(address) & ~clear) | set;
}

/* The same for what a measurement can do without: 0 when it does not come. */
static inline uint32_t comes(uint32_t address, uint32_t mask, uint32_t value)
{
    for (uint32_t i = 0; i < 100000u; i++)
        if ((REGISTER(address) & mask) == value)
            return 1;
    return 0;
}

/* At least so long, at any clock up to 160 MHz: a turn takes three cycles or more. */
static inline void wait_us(uint32_t us)
{
    for (volatile uint32_t turns = us * 54u; turns > 0; turns--)
        ;
}

/* What the factory measured at one supply: the reference, and the sensor at two temperatures. */
struct adc_calibration {
    uint32_t supply_mv;
    uint32_t reference, low, high;  /* addresses of 16-bit values */
    int32_t low_c, high_c;
};

/* Supply and temperature of two conversions; the sensor's is brought to the factory's supply. */
static inline void tell_supply(struct wire_environment_reply *reply,
                               const struct adc_calibration *c, uint32_t reference, uint32_t sensor)
{
    const uint32_t at_reference = *(const volatile uint16_t *)c->reference;
    const int32_t low = *(const volatile uint16_t *)c->low;
    const int32_t high = *(const volatile uint16_t *)c->high;
    if (reference == 0 || high <= low)
        return;  /* not known: no factory wrote this memory */
    reply->supply_mv = (int32_t)(c->supply_mv * at_reference / reference);
    const int32_t value = (int32_t)(sensor * at_reference / reference);
    reply->temperature_mc = c->low_c * 1000
                            + (value - low) * 1000 * (c->high_c - c->low_c) / (high - low);
}

/* Provided by the variant: die temperature, supply, clock source. */
void read_part_environment(struct wire_environment_reply *reply);

/* Provided by the variant's clocks.c: the CPU at CPU_HZ, and clocks of the pins and the USART. */
void start_clocks(void);

/* Provided by flash_cache.c (F4, L4: the accelerator in front of the flash) or by icache.c (U5,
 * with its monitors, which join the events of the core). */
void start_monitors(void);
void empty_part_caches(void);
uint32_t part_events(const struct wire_counter **list);
uint32_t select_part_events(const uint16_t *ids, uint32_t count);
void read_part_events(uint32_t *values);

#endif
