/* int8 depthwise convolution as reference code has it. */
#include "integer.h"

void depthwise_s8(const struct depthwise_s8 *layer, const int8_t *input, int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t y = 0; y < w->out_h; y++)
        for (int32_t x = 0; x < w->out_w; x++)
            for (int32_t channel = 0; channel < w->out_c; channel++) {
                int32_t sum = layer->bias[channel];
                for (int32_t ky = 0; ky < w->kernel_h; ky++)
                    for (int32_t kx = 0; kx < w->kernel_w; kx++) {
                        const int32_t in_y = y * w->stride_h - w->pad_top + ky * w->dilation_h;
                        const int32_t in_x = x * w->stride_w - w->pad_left + kx * w->dilation_w;
                        if (in_y < 0 || in_y >= w->in_h || in_x < 0 || in_x >= w->in_w)
                            continue;
                        const int32_t value = input[(in_y * w->in_w + in_x) * w->in_c
                                                    + channel / layer->multiplier];
                        sum += (value + layer->input_offset)
                            * layer->weights[(ky * w->kernel_w + kx) * w->out_c + channel];
                    }
                output[(y * w->out_w + x) * w->out_c + channel] =
                    requantise(&layer->requant, channel, sum);
            }
}
