/* Integer arithmetic the int8 kernels share. */
#ifndef TWIN_INTEGER_H
#define TWIN_INTEGER_H

#include <stdint.h>

#include "kernels.h"

static inline int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* Upper word of 2ab, rounded half up: TFLite's SaturatingRoundingDoublingHighMul for every
 * b > INT32_MIN (its nudge and division towards zero come to the same). */
static inline int32_t multiply_high(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

/* x / 2^exponent, rounded half away from zero; exponent 0 to 31. */
static inline int32_t divide_by_power(int32_t x, int32_t exponent)
{
    const int32_t mask = (int32_t)((1u << exponent) - 1u);
    const int32_t threshold = (mask >> 1) + (int32_t)((uint32_t)x >> 31);
    const int32_t remainder = x & mask;
    return (x >> exponent) + (int32_t)((uint32_t)(threshold - remainder) >> 31);
}

/* x x multiplier x 2^(shift - 31): TFLite's MultiplyByQuantizedMultiplier with two roundings. */
static inline int32_t scale(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift & ~(shift >> 31);
    x = (int32_t)((uint32_t)x << left);
    return divide_by_power(multiply_high(x, multiplier), left - shift);
}

static inline int8_t requantise(const struct kernel_requant *requant, int32_t channel, int32_t sum)
{
    const int32_t place = channel * requant->step;
    const int32_t value = scale(sum, requant->multiplier[place], requant->shift[place]);
    return (int8_t)clamp(value + requant->offset, requant->low, requant->high);
}

#endif
