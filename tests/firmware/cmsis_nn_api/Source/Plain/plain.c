#include "arm_nnfunctions.h"

#include <string.h>

/* TFLite's requantisation: double the product's upper half, rounded, then divide by a power of two,
 * halves away from zero. */
static int32_t requantise(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    const int64_t product = (int64_t)(value * (1 << left)) * multiplier;
    const int64_t nudged = product + (product >= 0 ? 1 << 30 : 1 - (1 << 30));
    const int32_t high = (int32_t)(nudged / (1ll << 31));
    const int32_t rest = high & (int32_t)((1ll << right) - 1);
    const int32_t half = (int32_t)(((1ll << right) - 1) >> 1) + (high < 0);
    return (high >> right) + (rest > half);
}

static int8_t finish(int32_t sum, int32_t multiplier, int32_t shift, int32_t offset,
                     const cmsis_nn_activation *activation)
{
    const int32_t value = requantise(sum, multiplier, shift) + offset;
    return (int8_t)(value < activation->min ? activation->min
                    : value > activation->max ? activation->max : value);
}

static arm_cmsis_nn_status use_scratch(const cmsis_nn_context *ctx, int32_t bytes)
{
    if (ctx->buf == 0 || ctx->size < bytes)
        return ARM_CMSIS_NN_ARG_ERROR;
    for (int32_t i = 0; i < bytes; i++)
        ((volatile uint8_t *)ctx->buf)[i] = 0xee;
    uint32_t word = 0xeeeeeeee;
    if (bytes >= 4)
        memcpy(&word, ctx->buf, 4); /* as the real ones load four bytes */
    return word == 0xeeeeeeee ? ARM_CMSIS_NN_SUCCESS : ARM_CMSIS_NN_ARG_ERROR;
}

/* Index of a value inside the image, or -1. */
static int32_t place(const cmsis_nn_dims *dims, int32_t y, int32_t x)
{
    return y < 0 || x < 0 || y >= dims->h || x >= dims->w ? -1 : (y * dims->w + x) * dims->c;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *params, SHAPES)
{
    (void)params;
    (void)output_dims;
    return 4 * filter_dims->h * filter_dims->w * input_dims->c;
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_conv_params *params,
    const cmsis_nn_per_channel_quant_params *quant, TENSORS)
{
    const int32_t depth = input_dims->c, channels = output_dims->c;
    int8_t *to = output;
    if (bias_dims->c != channels || filter_dims->n != channels || filter_dims->c != depth
        || use_scratch(ctx, 4 * filter_dims->h * filter_dims->w * depth) != ARM_CMSIS_NN_SUCCESS)
        return ARM_CMSIS_NN_ARG_ERROR;
    for (int32_t y = 0; y < output_dims->h; y++)
        for (int32_t x = 0; x < output_dims->w; x++)
            for (int32_t out = 0; out < channels; out++) {
                const int8_t *weight = filter + out * filter_dims->h * filter_dims->w * depth;
                int32_t sum = bias[out];
                for (int32_t i = 0; i < filter_dims->h; i++)
                    for (int32_t j = 0; j < filter_dims->w; j++, weight += depth) {
                        const int32_t at = place(
                            input_dims, y * params->stride.h - params->padding.h + i * params->dilation.h,
                            x * params->stride.w - params->padding.w + j * params->dilation.w);
                        for (int32_t c = 0; at >= 0 && c < depth; c++)
                            sum += weight[c] * (input[at + c] + params->input_offset);
                    }
                *to++ = finish(sum, quant->multiplier[out], quant->shift[out],
                               params->output_offset, &params->activation);
            }
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *params, SHAPES)
{
    (void)params;
    (void)output_dims;
    return 2 * filter_dims->h * filter_dims->w * input_dims->c;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *params,
    const cmsis_nn_per_channel_quant_params *quant, TENSORS)
{
    const int32_t channels = output_dims->c;
    int8_t *to = output;
    if (bias_dims->c != channels || filter_dims->c != channels
        || channels != input_dims->c * params->ch_mult
        || use_scratch(ctx, 2 * filter_dims->h * filter_dims->w * input_dims->c)
               != ARM_CMSIS_NN_SUCCESS)
        return ARM_CMSIS_NN_ARG_ERROR;
    for (int32_t y = 0; y < output_dims->h; y++)
        for (int32_t x = 0; x < output_dims->w; x++)
            for (int32_t out = 0; out < channels; out++) {
                int32_t sum = bias[out];
                for (int32_t i = 0; i < filter_dims->h; i++)
                    for (int32_t j = 0; j < filter_dims->w; j++) {
                        const int32_t at = place(
                            input_dims, y * params->stride.h - params->padding.h + i * params->dilation.h,
                            x * params->stride.w - params->padding.w + j * params->dilation.w);
                        if (at >= 0)
                            sum += filter[(i * filter_dims->w + j) * channels + out]
                                   * (input[at + out / params->ch_mult] + params->input_offset);
                    }
                *to++ = finish(sum, quant->multiplier[out], quant->shift[out],
                               params->output_offset, &params->activation);
            }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_fully_connected_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_fc_params *params,
    const cmsis_nn_per_tensor_quant_params *quant, TENSORS)
{
#if defined(ARM_MATH_MVEI)  /* the context holds bias + input offset x sum of the weights */
    const int32_t *const start = ctx->buf;
    const int32_t offset = 0;
    (void)bias;
#else
    const int32_t *const start = bias;
    const int32_t offset = params->input_offset;
    (void)ctx;
#endif
    (void)bias_dims;
    for (int32_t row = 0; row < input_dims->n; row++, input += filter_dims->n)
        for (int32_t out = 0; out < output_dims->c; out++) {
            int32_t sum = start[out];
            for (int32_t i = 0; i < filter_dims->n; i++)
                sum += filter[out * filter_dims->n + i] * (input[i] + offset);
            *output++ = finish(sum, quant->multiplier, quant->shift, params->output_offset,
                               &params->activation);
        }
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_avgpool_s8_get_buffer_size(const int dim_dst_width, const int ch_src)
{
    (void)dim_dst_width;
    return ch_src * 4;
}

static int8_t pool_one(const cmsis_nn_pool_params *params, const cmsis_nn_dims *dims,
                       const cmsis_nn_dims *window, const int8_t *input, int32_t y, int32_t x,
                       int32_t average)
{
    int32_t sum = 0, count = 0, most = -128;
    for (int32_t i = 0; i < window->h; i++)
        for (int32_t j = 0; j < window->w; j++) {
            const int32_t at = place(dims, y * params->stride.h - params->padding.h + i,
                                     x * params->stride.w - params->padding.w + j);
            if (at < 0)
                continue;
            sum += input[at];
            most = input[at] > most ? input[at] : most;
            count++;
        }
    const int32_t mean = sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
    const int32_t value = average ? mean : most;
    return (int8_t)(value < params->activation.min ? params->activation.min
                    : value > params->activation.max ? params->activation.max : value);
}

static void pool(const cmsis_nn_pool_params *params, POOLED, int32_t average)
{
    for (int32_t y = 0; y < output_dims->h; y++)
        for (int32_t x = 0; x < output_dims->w; x++)
            for (int32_t c = 0; c < output_dims->c; c++)
                *output++ = pool_one(params, input_dims, filter_dims, input + c, y, x, average);
}

arm_cmsis_nn_status arm_avgpool_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, POOLED)
{
    if (use_scratch(ctx, 4 * input_dims->c) != ARM_CMSIS_NN_SUCCESS)
        return ARM_CMSIS_NN_ARG_ERROR;
    pool(params, input_dims, input, filter_dims, output_dims, output, 1);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_max_pool_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, POOLED)
{
    (void)ctx;
    pool(params, input_dims, input, filter_dims, output_dims, output, 0);
    return ARM_CMSIS_NN_SUCCESS;
}
