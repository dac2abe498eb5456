/* CMSIS-NN's kernels behind ours, for `CMSIS_NN_PATH`. The functions called have had these
 * signatures since CMSIS-NN 4.1; on cores with MVE the fully connected one takes its sums with bias
 * and input offset inside, as 6.0 and later do (the generated image holds them so). */
#include "arm_nnfunctions.h"
#include "kernels.h"

/* Written by `twin firmware build`. */
extern uint8_t kernels_scratch[];
extern const int32_t kernels_scratch_bytes;
extern uint32_t kernels_failure;  /* a line of this file, 0: none */

static void note_failure(uint32_t line)
{
    if (kernels_failure == 0)
        kernels_failure = line;
}

/* The working memory a function asks for. */
static cmsis_nn_context take_scratch(int32_t bytes)
{
    if (bytes > kernels_scratch_bytes)
        note_failure(__LINE__);
    const cmsis_nn_context context = {.buf = kernels_scratch, .size = bytes};
    return context;
}

#define CHECK(status) \
    do { \
        if ((status) != ARM_CMSIS_NN_SUCCESS) \
            note_failure(__LINE__); \
    } while (0)

static cmsis_nn_per_channel_quant_params channels_of(const struct kernel_requant *requant)
{
    const cmsis_nn_per_channel_quant_params found = {
        .multiplier = (int32_t *)(uintptr_t)requant->multiplier,
        .shift = (int32_t *)(uintptr_t)requant->shift};
    return found;
}

static cmsis_nn_dims input_dims(const struct kernel_window *w)
{
    return (cmsis_nn_dims){.n = 1, .h = w->in_h, .w = w->in_w, .c = w->in_c};
}

static cmsis_nn_dims output_dims(const struct kernel_window *w)
{
    return (cmsis_nn_dims){.n = 1, .h = w->out_h, .w = w->out_w, .c = w->out_c};
}

static void convolve(const cmsis_nn_conv_params *params, const struct kernel_requant *requant,
                     const cmsis_nn_dims dims[3], const int8_t *input, const int8_t *weights,
                     const int32_t *bias, int8_t *output)
{
    const cmsis_nn_per_channel_quant_params channels = channels_of(requant);
    const cmsis_nn_dims bias_dims = {.n = 1, .h = 1, .w = 1, .c = dims[2].c};
    const cmsis_nn_context context = take_scratch(
        arm_convolve_wrapper_s8_get_buffer_size(params, &dims[0], &dims[1], &dims[2]));
    CHECK(arm_convolve_wrapper_s8(&context, params, &channels, &dims[0], input, &dims[1], weights,
                                  &bias_dims, bias, &dims[2], output));
}

void conv_s8(const struct conv_s8 *layer, const int8_t *input, int8_t *output, int8_t *columns)
{
    (void)columns;
    const struct kernel_window *w = &layer->window;
    const cmsis_nn_conv_params params = {
        .input_offset = -layer->border, .output_offset = layer->requant.offset,
        .stride = {.w = w->stride_w, .h = w->stride_h},
        .padding = {.w = w->pad_left, .h = w->pad_top},
        .dilation = {.w = w->dilation_w, .h = w->dilation_h},
        .activation = {.min = layer->requant.low, .max = layer->requant.high}};
    const cmsis_nn_dims dims[3] = {
        input_dims(w), {.n = w->out_c, .h = w->kernel_h, .w = w->kernel_w, .c = w->in_c},
        output_dims(w)};
    convolve(&params, &layer->requant, dims, input, layer->weights, layer->bias, output);
}

/* One requantisation in all: a fully connected layer. */
static void multiply(const struct matmul_s8 *layer, const int8_t *input, int8_t *output)
{
    const cmsis_nn_fc_params params = {
        .input_offset = -layer->border, .output_offset = layer->requant.offset,
        .activation = {.min = layer->requant.low, .max = layer->requant.high}};
    const cmsis_nn_per_tensor_quant_params scale = {.multiplier = layer->requant.multiplier[0],
                                                    .shift = layer->requant.shift[0]};
    const cmsis_nn_dims in = {.n = layer->rows, .h = 1, .w = 1, .c = layer->depth};
    const cmsis_nn_dims filter = {.n = layer->depth, .h = 1, .w = 1, .c = layer->columns};
    const cmsis_nn_dims bias = {.n = 1, .h = 1, .w = 1, .c = layer->columns};
    const cmsis_nn_dims out = {.n = layer->rows, .h = 1, .w = 1, .c = layer->columns};
    /* With MVE `bias` holds the sums of the weights' rows x input offset + bias; else it is read
     * as what it is, and the context is not. */
    const cmsis_nn_context context = {.buf = (void *)(uintptr_t)layer->bias,
                                      .size = 4 * layer->columns};
    CHECK(arm_fully_connected_s8(&context, &params, &scale, &in, input, &filter, layer->weights,
                                 &bias, layer->bias, &out, output));
}

void matmul_s8(const struct matmul_s8 *layer, const int8_t *input, int8_t *output)
{
    if (layer->requant.step == 0) {
        multiply(layer, input, output);
        return;
    }
    const cmsis_nn_conv_params params = {
        .input_offset = -layer->border, .output_offset = layer->requant.offset,
        .stride = {.w = 1, .h = 1}, .dilation = {.w = 1, .h = 1},
        .activation = {.min = layer->requant.low, .max = layer->requant.high}};
    const cmsis_nn_dims dims[3] = {
        {.n = 1, .h = 1, .w = layer->rows, .c = layer->depth},
        {.n = layer->columns, .h = 1, .w = 1, .c = layer->depth},
        {.n = 1, .h = 1, .w = layer->rows, .c = layer->columns}};
    convolve(&params, &layer->requant, dims, input, layer->weights, layer->bias, output);
}

void depthwise_s8(const struct depthwise_s8 *layer, const int8_t *input, int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    const cmsis_nn_dw_conv_params params = {
        .input_offset = layer->input_offset, .output_offset = layer->requant.offset,
        .ch_mult = layer->multiplier, .stride = {.w = w->stride_w, .h = w->stride_h},
        .padding = {.w = w->pad_left, .h = w->pad_top},
        .dilation = {.w = w->dilation_w, .h = w->dilation_h},
        .activation = {.min = layer->requant.low, .max = layer->requant.high}};
    const cmsis_nn_per_channel_quant_params channels = channels_of(&layer->requant);
    const cmsis_nn_dims in = input_dims(w), out = output_dims(w);
    const cmsis_nn_dims filter = {.n = 1, .h = w->kernel_h, .w = w->kernel_w, .c = w->out_c};
    const cmsis_nn_dims bias = {.n = 1, .h = 1, .w = 1, .c = w->out_c};
    const cmsis_nn_context context = take_scratch(
        arm_depthwise_conv_wrapper_s8_get_buffer_size(&params, &in, &filter, &out));
    CHECK(arm_depthwise_conv_wrapper_s8(&context, &params, &channels, &in, input, &filter,
                                        layer->weights, &bias, layer->bias, &out, output));
}

static cmsis_nn_pool_params pool_params(const struct pool_s8 *layer)
{
    const struct kernel_window *w = &layer->window;
    return (cmsis_nn_pool_params){
        .stride = {.w = w->stride_w, .h = w->stride_h},
        .padding = {.w = w->pad_left, .h = w->pad_top},
        .activation = {.min = layer->low, .max = layer->high}};
}

void average_pool_s8(const struct pool_s8 *layer, const int8_t *input, int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    const cmsis_nn_pool_params params = pool_params(layer);
    const cmsis_nn_dims in = input_dims(w), out = output_dims(w);
    const cmsis_nn_dims filter = {.n = 1, .h = w->kernel_h, .w = w->kernel_w, .c = 1};
    const cmsis_nn_context context = take_scratch(
        arm_avgpool_s8_get_buffer_size(w->out_w, w->in_c));
    CHECK(arm_avgpool_s8(&context, &params, &in, input, &filter, &out, output));
}

void max_pool_s8(const struct pool_s8 *layer, const int8_t *input, int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    const cmsis_nn_pool_params params = pool_params(layer);
    const cmsis_nn_dims in = input_dims(w), out = output_dims(w);
    const cmsis_nn_dims filter = {.n = 1, .h = w->kernel_h, .w = w->kernel_w, .c = 1};
    const cmsis_nn_context context = take_scratch(0);
    CHECK(arm_max_pool_s8(&context, &params, &in, input, &filter, &out, output));
}
