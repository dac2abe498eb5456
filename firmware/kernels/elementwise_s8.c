/* int8 operators on one value, or one pair of values, at a time. */
#include "dot.h"
#include "integer.h"

#define ADD_SHIFT 20  /* bits kept below the sum's unit, as TFLite keeps them */

#if defined(__ARM_FEATURE_MVE) && !defined(KERNEL_PORTABLE)

#include "vector_mve.h"

static int32x4_t scale_input(const struct add_s8 *layer, int32_t which, int32x4_t values)
{
    values = vshlq_n_s32(vaddq_n_s32(values, layer->offset[which]), ADD_SHIFT);
    return scale_lanes(values, vdupq_n_s32(layer->multiplier[which]),
                       vdupq_n_s32(layer->shift[which]));
}

void add_s8(const struct add_s8 *layer, const int8_t *left, const int8_t *right, int8_t *output)
{
    const int32x4_t multiplier = vdupq_n_s32(layer->out_multiplier);
    const int32x4_t shift = vdupq_n_s32(layer->out_shift);
    for (int32_t i = 0; i < layer->count; i += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)(layer->count - i));
        const int32x4_t sum = vaddq_s32(scale_input(layer, 0, vldrbq_z_s32(left + i, lanes)),
                                        scale_input(layer, 1, vldrbq_z_s32(right + i, lanes)));
        store_lanes(scale_lanes(sum, multiplier, shift), layer->out_offset, layer->low,
                    layer->high, output + i, lanes);
    }
}

#else

static int32_t add_values(const struct add_s8 *layer, int32_t left, int32_t right)
{
    left = (left + layer->offset[0]) * (1 << ADD_SHIFT);
    right = (right + layer->offset[1]) * (1 << ADD_SHIFT);
    const int32_t sum = scale(left, layer->multiplier[0], layer->shift[0])
                        + scale(right, layer->multiplier[1], layer->shift[1]);
    return scale(sum, layer->out_multiplier, layer->out_shift) + layer->out_offset;
}

void add_s8(const struct add_s8 *layer, const int8_t *left, const int8_t *right, int8_t *output)
{
    for (int32_t i = 0; i < layer->count; i++)
        output[i] = (int8_t)clamp(add_values(layer, left[i], right[i]), layer->low, layer->high);
}

#endif

void lookup_s8(const struct lookup_s8 *layer, const int8_t *input, int8_t *output)
{
    for (int32_t i = 0; i < layer->count; i++)
        output[i] = layer->table[input[i] + 128];
}

void quantize_s8(const struct quantize_s8 *layer, const float *input, int8_t *output)
{
    for (int32_t i = 0; i < layer->count; i++) {
        const float value = input[i] / layer->scale;
        /* Clamped first: a float beyond int32 has no integer. Half away from zero, as TFLite. */
        const float bounded = value < -512.0f ? -512.0f : value > 512.0f ? 512.0f : value;
        const int32_t rounded = (int32_t)(bounded + (bounded < 0.0f ? -0.5f : 0.5f));
        output[i] = (int8_t)clamp(rounded + layer->zero_point, INT8_MIN, INT8_MAX);
    }
}

void dequantize_s8(const struct quantize_s8 *layer, const int8_t *input, float *output)
{
    for (int32_t i = 0; i < layer->count; i++)
        output[i] = layer->scale * (float)(input[i] - layer->zero_point);
}
