/* Float kernels in plain C, the shape of the int8 ones. */
#include "copy.h"
#include "kernels.h"

static float clamp_f32(float value, float low, float high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* e^x for x <= 0: 2^n by its exponent bits times a polynomial of the rest; relative error below
 * 2e-7 (the series of e^r for |r| <= ln(2) / 2, cut after r^7). */
static float exponential(float x)
{
    if (x < -87.0f)
        return 0.0f;
    const int32_t n = (int32_t)(x * 1.44269504f - 0.5f);       /* 1 / ln 2 */
    const float r = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f; /* ln 2, in two */
    float sum = 1.0f / 5040.0f;
    sum = sum * r + 1.0f / 720.0f;
    sum = sum * r + 1.0f / 120.0f;
    sum = sum * r + 1.0f / 24.0f;
    sum = sum * r + 1.0f / 6.0f;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    const uint32_t bits = (uint32_t)(n + 127) << 23;
    float power;
    __builtin_memcpy(&power, &bits, 4);
    return sum * power;
}

void matmul_f32(const struct matmul_f32 *layer, const float *input, float *output)
{
    for (int32_t row = 0; row < layer->rows; row++, input += layer->depth) {
        const float *w = layer->weights;
        for (int32_t column = 0; column < layer->columns; column++, w += layer->depth) {
            float sum = 0.0f;
            for (int32_t i = 0; i < layer->depth; i++)
                sum += input[i] * w[i];
            *output++ = clamp_f32(sum + layer->bias[column], layer->low, layer->high);
        }
    }
}

static void copy_window(const struct kernel_window *w, const float *input, int32_t position,
                        float *column)
{
    const int32_t top = position / w->out_w * w->stride_h - w->pad_top;
    const int32_t left = position % w->out_w * w->stride_w - w->pad_left;
    for (int32_t tap = 0; tap < w->kernel_h * w->kernel_w; tap++, column += w->in_c) {
        const int32_t y = top + tap / w->kernel_w * w->dilation_h;
        const int32_t x = left + tap % w->kernel_w * w->dilation_w;
        if (y >= 0 && y < w->in_h && x >= 0 && x < w->in_w)
            copy_bytes(column, input + (y * w->in_w + x) * w->in_c, w->in_c * 4);
        else
            fill_bytes(column, 0, w->in_c * 4);
    }
}

void conv_f32(const struct conv_f32 *layer, const float *input, float *output, float *column)
{
    const struct kernel_window *w = &layer->window;
    const struct matmul_f32 product = {
        .rows = 1, .depth = w->kernel_h * w->kernel_w * w->in_c, .columns = w->out_c,
        .weights = layer->weights, .bias = layer->bias, .low = layer->low, .high = layer->high};
    for (int32_t position = 0; position < w->out_h * w->out_w; position++, output += w->out_c) {
        copy_window(w, input, position, column);
        matmul_f32(&product, column, output);
    }
}

void depthwise_f32(const struct depthwise_f32 *layer, const float *input, float *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t position = 0; position < w->out_h * w->out_w; position++) {
        const int32_t top = position / w->out_w * w->stride_h - w->pad_top;
        const int32_t left = position % w->out_w * w->stride_w - w->pad_left;
        for (int32_t channel = 0; channel < w->out_c; channel++) {
            float sum = 0.0f;
            for (int32_t tap = 0; tap < w->kernel_h * w->kernel_w; tap++) {
                const int32_t y = top + tap / w->kernel_w * w->dilation_h;
                const int32_t x = left + tap % w->kernel_w * w->dilation_w;
                if (y >= 0 && y < w->in_h && x >= 0 && x < w->in_w)
                    sum += input[(y * w->in_w + x) * w->in_c + channel / layer->multiplier]
                           * layer->weights[tap * w->out_c + channel];
            }
            *output++ = clamp_f32(sum + layer->bias[channel], layer->low, layer->high);
        }
    }
}

/* Sum (or greatest value) of one channel over the part of a window inside the image. */
static float pool_window(const struct kernel_window *w, const float *input, int32_t position,
                         int32_t greatest, int32_t *count)
{
    const int32_t top = position / w->out_w * w->stride_h - w->pad_top;
    const int32_t left = position % w->out_w * w->stride_w - w->pad_left;
    float result = 0.0f;
    int32_t seen = 0;
    for (int32_t tap = 0; tap < w->kernel_h * w->kernel_w; tap++) {
        const int32_t y = top + tap / w->kernel_w, x = left + tap % w->kernel_w;
        if (y < 0 || y >= w->in_h || x < 0 || x >= w->in_w)
            continue;
        const float value = input[(y * w->in_w + x) * w->in_c];
        if (!greatest)
            result += value;
        else if (seen == 0 || value > result)
            result = value;
        seen++;
    }
    *count = seen;
    return result;
}

void average_pool_f32(const struct pool_f32 *layer, const float *input, float *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t position = 0; position < w->out_h * w->out_w; position++) {
        for (int32_t channel = 0; channel < w->in_c; channel++) {
            int32_t count;
            const float sum = pool_window(w, input + channel, position, 0, &count);
            *output++ = clamp_f32(sum / (float)count, layer->low, layer->high);
        }
    }
}

void max_pool_f32(const struct pool_f32 *layer, const float *input, float *output)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t position = 0; position < w->out_h * w->out_w; position++) {
        for (int32_t channel = 0; channel < w->in_c; channel++) {
            int32_t count;
            const float most = pool_window(w, input + channel, position, 1, &count);
            *output++ = clamp_f32(most, layer->low, layer->high);
        }
    }
}

void add_f32(const struct add_f32 *layer, const float *left, const float *right, float *output)
{
    for (int32_t i = 0; i < layer->count; i++)
        output[i] = clamp_f32(left[i] + right[i], layer->low, layer->high);
}

void mean_f32(const struct mean_f32 *layer, const float *input, float *output)
{
    for (int32_t channel = 0; channel < layer->channels; channel++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < layer->positions; i++)
            sum += input[i * layer->channels + channel];
        output[channel] = sum / (float)layer->positions;
    }
}

void softmax_f32(const struct softmax_f32 *layer, const float *input, float *output)
{
    for (int32_t row = 0; row < layer->rows; row++, input += layer->depth, output += layer->depth) {
        float most = input[0], sum = 0.0f;
        for (int32_t i = 1; i < layer->depth; i++)
            most = input[i] > most ? input[i] : most;
        for (int32_t i = 0; i < layer->depth; i++) {
            output[i] = exponential(layer->beta * (input[i] - most));
            sum += output[i];
        }
        for (int32_t i = 0; i < layer->depth; i++)
            output[i] /= sum;
    }
}
