/* The part of CMSIS-NN's interface that wrappers.c calls. */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include <stdint.h>

#if defined(__ARM_FEATURE_MVE)
#define ARM_MATH_MVEI
#endif

typedef enum { ARM_CMSIS_NN_SUCCESS = 0, ARM_CMSIS_NN_ARG_ERROR = -1 } arm_cmsis_nn_status;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;
typedef struct { int32_t multiplier, shift; } cmsis_nn_per_tensor_quant_params;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct {
    int32_t input_offset, output_offset;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_conv_params;
typedef struct {
    int32_t input_offset, output_offset, ch_mult;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;
typedef struct { cmsis_nn_tile stride, padding; cmsis_nn_activation activation; } cmsis_nn_pool_params;
typedef struct {
    int32_t input_offset, filter_offset, output_offset;
    cmsis_nn_activation activation;
} cmsis_nn_fc_params;

#define TENSORS const cmsis_nn_dims *input_dims, const int8_t *input, \
    const cmsis_nn_dims *filter_dims, const int8_t *filter, const cmsis_nn_dims *bias_dims, \
    const int32_t *bias, const cmsis_nn_dims *output_dims, int8_t *output
#define POOLED const cmsis_nn_dims *input_dims, const int8_t *input, \
    const cmsis_nn_dims *filter_dims, const cmsis_nn_dims *output_dims, int8_t *output
#define SHAPES const cmsis_nn_dims *input_dims, const cmsis_nn_dims *filter_dims, \
    const cmsis_nn_dims *output_dims

arm_cmsis_nn_status arm_convolve_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_conv_params *params,
    const cmsis_nn_per_channel_quant_params *quant, TENSORS);
int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *params, SHAPES);
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *params,
    const cmsis_nn_per_channel_quant_params *quant, TENSORS);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *params, SHAPES);
arm_cmsis_nn_status arm_fully_connected_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_fc_params *params,
    const cmsis_nn_per_tensor_quant_params *quant, TENSORS);
arm_cmsis_nn_status arm_avgpool_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, POOLED);
int32_t arm_avgpool_s8_get_buffer_size(const int dim_dst_width, const int ch_src);
arm_cmsis_nn_status arm_max_pool_s8(
    const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, POOLED);

#endif
