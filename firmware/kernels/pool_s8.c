/* int8 pooling over the part of each window that lies inside the image. */
#include "dot.h"
#include "integer.h"

/* The part of a window inside the image: rows, columns, and its first value of channel 0. */
struct view {
    int32_t rows, columns, row_step, channels;
    const int8_t *input;
};

static struct view find_view(const struct kernel_window *w, const int8_t *input, int32_t out_y,
                             int32_t out_x)
{
    const int32_t top = out_y * w->stride_h - w->pad_top;
    const int32_t left = out_x * w->stride_w - w->pad_left;
    const int32_t y = top < 0 ? 0 : top, x = left < 0 ? 0 : left;
    const int32_t bottom = top + w->kernel_h, right = left + w->kernel_w;
    const struct view view = {
        .rows = (bottom < w->in_h ? bottom : w->in_h) - y,
        .columns = (right < w->in_w ? right : w->in_w) - x,
        .row_step = w->in_w * w->in_c,
        .channels = w->in_c,
        .input = input + (y * w->in_w + x) * w->in_c};
    return view;
}

/* Both of the following treat as many channels at a time as a vector holds, one without vectors. */
#if defined(__ARM_FEATURE_MVE) && !defined(KERNEL_PORTABLE)

#define SUM_LANES 4
#define MAX_LANES 16

static void sum_channels(const struct view *view, int32_t channel, int32_t sums[SUM_LANES])
{
    const mve_pred16_t lanes = vctp32q((uint32_t)(view->channels - channel));
    const int8_t *row = view->input + channel;
    int32x4_t vector = vdupq_n_s32(0);
    for (int32_t y = 0; y < view->rows; y++, row += view->row_step)
        for (int32_t x = 0; x < view->columns; x++)
            vector = vaddq_s32(vector, vldrbq_z_s32(row + x * view->channels, lanes));
    vst1q_s32(sums, vector);
}

static void max_channels(const struct view *view, int32_t channel, int8_t most[MAX_LANES])
{
    const mve_pred16_t lanes = vctp8q((uint32_t)(view->channels - channel));
    const int8_t *row = view->input + channel;
    int8x16_t vector = vdupq_n_s8(INT8_MIN);
    for (int32_t y = 0; y < view->rows; y++, row += view->row_step)
        for (int32_t x = 0; x < view->columns; x++)
            vector = vmaxq_s8(vector, vldrbq_z_s8(row + x * view->channels, lanes));
    vst1q_s8(most, vector);
}

#else

#define SUM_LANES 1
#define MAX_LANES 1

static void sum_channels(const struct view *view, int32_t channel, int32_t sums[SUM_LANES])
{
    const int8_t *row = view->input + channel;
    int32_t sum = 0;
    for (int32_t y = 0; y < view->rows; y++, row += view->row_step)
        for (int32_t x = 0; x < view->columns; x++)
            sum += row[x * view->channels];
    sums[0] = sum;
}

static void max_channels(const struct view *view, int32_t channel, int8_t most[MAX_LANES])
{
    const int8_t *row = view->input + channel;
    int32_t best = INT8_MIN;
    for (int32_t y = 0; y < view->rows; y++, row += view->row_step)
        for (int32_t x = 0; x < view->columns; x++)
            best = row[x * view->channels] > best ? row[x * view->channels] : best;
    most[0] = (int8_t)best;
}

#endif

void average_pool_s8(const struct pool_s8 *layer, const int8_t *input, int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t position = 0; position < w->out_h * w->out_w; position++) {
        const struct view view = find_view(w, input, position / w->out_w, position % w->out_w);
        const int32_t count = view.rows * view.columns;
        for (int32_t channel = 0; channel < w->in_c; channel += SUM_LANES) {
            int32_t sums[SUM_LANES];
            sum_channels(&view, channel, sums);
            for (int32_t i = 0; i < SUM_LANES && channel + i < w->in_c; i++) {
                const int32_t half = sums[i] > 0 ? count / 2 : -(count / 2);
                *output++ = (int8_t)clamp((sums[i] + half) / count, layer->low, layer->high);
            }
        }
    }
}

void max_pool_s8(const struct pool_s8 *layer, const int8_t *input, int8_t *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t position = 0; position < w->out_h * w->out_w; position++) {
        const struct view view = find_view(w, input, position / w->out_w, position % w->out_w);
        for (int32_t channel = 0; channel < w->in_c; channel += MAX_LANES) {
            int8_t most[MAX_LANES];
            max_channels(&view, channel, most);
            for (int32_t i = 0; i < MAX_LANES && channel + i < w->in_c; i++)
                *output++ = (int8_t)clamp(most[i], layer->low, layer->high);
        }
    }
}
