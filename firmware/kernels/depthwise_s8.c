/* int8 depthwise convolution: every channel has its own filter. The sums of some channels run over
 * the taps inside the image, so that borders cost nothing. */
#include "dot.h"
#include "integer.h"

/* The taps of one window that lie inside the image, and where they start. */
struct taps {
    int32_t rows, columns;         /* taps inside */
    const int8_t *input;           /* value of channel 0 under the first of them */
    const int8_t *weights;         /* weight of channel 0 of the first of them */
    int32_t row_step, tap_step;    /* bytes of the input from row to row, tap to tap */
};

static int32_t first_inside(int32_t start, int32_t dilation)
{
    return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
}

static int32_t last_inside(int32_t start, int32_t dilation, int32_t kernel, int32_t size)
{
    const int32_t last = (size - 1 - start + dilation) / dilation;
    return last < kernel ? last : kernel;
}

static struct taps find_taps(const struct depthwise_s8 *layer, const int8_t *input, int32_t out_y,
                             int32_t out_x)
{
    const struct kernel_window *w = &layer->window;
    const int32_t top = out_y * w->stride_h - w->pad_top;
    const int32_t left = out_x * w->stride_w - w->pad_left;
    const int32_t row = first_inside(top, w->dilation_h), tap = first_inside(left, w->dilation_w);
    const int32_t y = top + row * w->dilation_h, x = left + tap * w->dilation_w;
    struct taps taps = {
        .rows = last_inside(top, w->dilation_h, w->kernel_h, w->in_h) - row,
        .columns = last_inside(left, w->dilation_w, w->kernel_w, w->in_w) - tap,
        .input = input + (y * w->in_w + x) * w->in_c,
        .weights = layer->weights + (row * w->kernel_w + tap) * w->out_c,
        .row_step = w->dilation_h * w->in_w * w->in_c,
        .tap_step = w->dilation_w * w->in_c};
    return taps;
}

static int32_t sum_channel(const struct depthwise_s8 *layer, const struct taps *taps,
                           int32_t in_channel, int32_t channel)
{
    const struct kernel_window *w = &layer->window;
    int32_t sum = layer->bias[channel];
    const int8_t *row = taps->input + in_channel, *weights = taps->weights + channel;
    for (int32_t y = 0; y < taps->rows; y++) {
        const int8_t *x = row, *v = weights;
        for (int32_t i = 0; i < taps->columns; i++) {
            sum += (*x + layer->input_offset) * *v;
            x += taps->tap_step;
            v += w->out_c;
        }
        row += taps->row_step;
        weights += w->kernel_w * w->out_c;
    }
    return sum;
}

#if defined(__ARM_FEATURE_MVE) && !defined(KERNEL_PORTABLE)

#include "vector_mve.h"

static int32_t run_channels(const struct depthwise_s8 *layer, const struct taps *taps,
                            int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t channel = 0; channel < w->out_c; channel += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)(w->out_c - channel));
        int32x4_t sums = vldrwq_z_s32(layer->bias + channel, lanes);
        const int8_t *row = taps->input + channel, *weights = taps->weights + channel;
        for (int32_t y = 0; y < taps->rows; y++) {
            const int8_t *x = row, *v = weights;
            for (int32_t i = 0; i < taps->columns; i++) {
                const int32x4_t values = vaddq_n_s32(vldrbq_z_s32(x, lanes), layer->input_offset);
                sums = vaddq_s32(sums, vmulq_s32(values, vldrbq_z_s32(v, lanes)));
                x += taps->tap_step;
                v += w->out_c;
            }
            row += taps->row_step;
            weights += w->kernel_w * w->out_c;
        }
        requantise_lanes(&layer->requant, channel, sums, output + channel, lanes);
    }
    return w->out_c;
}

#elif defined(__ARM_FEATURE_DSP) && !defined(KERNEL_PORTABLE)

static void sum_four(const struct depthwise_s8 *layer, const struct taps *taps, int32_t channel,
                     int32_t sums[4])
{
    const struct kernel_window *w = &layer->window;
    const int16x2_t offset = (int32_t)(((uint32_t)layer->input_offset << 16)
                                       | ((uint32_t)layer->input_offset & 0xffffu));
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    const int8_t *row = taps->input + channel, *weights = taps->weights + channel;
    for (int32_t y = 0; y < taps->rows; y++) {
        const int8_t *x = row, *v = weights;
        for (int32_t i = 0; i < taps->columns; i++) {
            const int32_t values = read_word(x), factors = read_word(v);
            const int16x2_t even = __sxtab16(offset, values);
            const int16x2_t odd = __sxtab16(offset, rotate(values));
            const int16x2_t even_factors = even_bytes(factors), odd_factors = odd_bytes(factors);
            s0 = __smlabb(even, even_factors, s0);
            s1 = __smlabb(odd, odd_factors, s1);
            s2 = __smlatt(even, even_factors, s2);
            s3 = __smlatt(odd, odd_factors, s3);
            x += taps->tap_step;
            v += w->out_c;
        }
        row += taps->row_step;
        weights += w->kernel_w * w->out_c;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

static int32_t run_channels(const struct depthwise_s8 *layer, const struct taps *taps,
                            int8_t *output)
{
    int32_t channel = 0;
    for (; channel + 3 < layer->window.out_c; channel += 4) {
        const int32_t *bias = layer->bias + channel;
        int32_t sums[4] = {bias[0], bias[1], bias[2], bias[3]};
        sum_four(layer, taps, channel, sums);
        for (int32_t i = 0; i < 4; i++)
            output[channel + i] = requantise(&layer->requant, channel + i, sums[i]);
    }
    return channel;
}

#else

static int32_t run_channels(const struct depthwise_s8 *layer, const struct taps *taps,
                            int8_t *output)
{
    (void)layer;
    (void)taps;
    (void)output;
    return 0;
}

#endif

void depthwise_s8(const struct depthwise_s8 *layer, const int8_t *input, int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t y = 0; y < w->out_h; y++) {
        for (int32_t x = 0; x < w->out_w; x++, output += w->out_c) {
            const struct taps taps = find_taps(layer, input, y, x);
            /* Vector code takes the channels it can; each has its own filter, or it takes none. */
            int32_t channel = layer->multiplier == 1 ? run_channels(layer, &taps, output) : 0;
            for (; channel < w->out_c; channel++)
                output[channel] = requantise(
                    &layer->requant, channel,
                    sum_channel(layer, &taps, channel / layer->multiplier, channel));
        }
    }
}
