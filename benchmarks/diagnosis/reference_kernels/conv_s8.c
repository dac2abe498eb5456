/* int8 convolution as reference code has it: one loop per dimension, a test per tap. */
#include "integer.h"

void conv_s8(const struct conv_s8 *layer, const int8_t *input, int8_t *output, int8_t *columns)
{
    const struct kernel_window *w = &layer->window;
    (void)columns;
    for (int32_t y = 0; y < w->out_h; y++)
        for (int32_t x = 0; x < w->out_w; x++)
            for (int32_t channel = 0; channel < w->out_c; channel++) {
                int32_t sum = layer->bias[channel];
                for (int32_t ky = 0; ky < w->kernel_h; ky++)
                    for (int32_t kx = 0; kx < w->kernel_w; kx++) {
                        const int32_t in_y = y * w->stride_h - w->pad_top + ky * w->dilation_h;
                        const int32_t in_x = x * w->stride_w - w->pad_left + kx * w->dilation_w;
                        const int inside = in_y >= 0 && in_y < w->in_h && in_x >= 0
                            && in_x < w->in_w;
                        for (int32_t c = 0; c < w->in_c; c++) {
                            const int32_t value = inside
                                ? input[(in_y * w->in_w + in_x) * w->in_c + c] : layer->border;
                            sum += value * layer->weights[
                                ((channel * w->kernel_h + ky) * w->kernel_w + kx) * w->in_c + c];
                        }
                    }
                output[(y * w->out_w + x) * w->out_c + channel] =
                    requantise(&layer->requant, channel, sum);
            }
}
