/* Requantisation of four lanes on MVE, equal to `requantise` of integer.h. */
#ifndef TWIN_VECTOR_MVE_H
#define TWIN_VECTOR_MVE_H

#include <arm_mve.h>

#include "kernels.h"

static inline int32x4_t divide_lanes(int32x4_t x, int32x4_t minus_exponent)
{
    /* Half away from zero from half up: negative numbers lose one first, unless unshifted. */
    const int32x4_t fixup = vshrq_n_s32(vandq_s32(x, minus_exponent), 31);
    return vrshlq_s32(vqaddq_s32(x, fixup), minus_exponent);
}

static inline int32x4_t scale_lanes(int32x4_t x, int32x4_t multiplier, int32x4_t shift)
{
    const int32x4_t left = vmaxq_s32(shift, vdupq_n_s32(0));
    const int32x4_t right = vminq_s32(shift, vdupq_n_s32(0));
    return divide_lanes(vqrdmulhq_s32(vshlq_s32(x, left), multiplier), right);
}

static inline void store_lanes(int32x4_t value, int32_t offset, int32_t low, int32_t high,
                               int8_t *output, mve_pred16_t lanes)
{
    value = vaddq_n_s32(value, offset);
    value = vmaxq_s32(value, vdupq_n_s32(low));
    value = vminq_s32(value, vdupq_n_s32(high));
    vstrbq_p_s32(output, value, lanes);
}

static inline void requantise_lanes(const struct kernel_requant *requant, int32_t channel,
                                    int32x4_t sums, int8_t *output, mve_pred16_t lanes)
{
    int32x4_t multiplier, shift;
    if (requant->step) {
        multiplier = vldrwq_z_s32(requant->multiplier + channel, lanes);
        shift = vldrwq_z_s32(requant->shift + channel, lanes);
    } else {
        multiplier = vdupq_n_s32(requant->multiplier[0]);
        shift = vdupq_n_s32(requant->shift[0]);
    }
    store_lanes(scale_lanes(sums, multiplier, shift), requant->offset, requant->low,
                requant->high, output, lanes);
}

#endif
