/* int8 convolution: windows are copied to columns (im2col), two at a time, and multiplied. */
#include "kernels.h"
#include "copy.h"

/* One row of a window: `before` border taps, `inside` taps of the image, `after` border taps. */
static int8_t *copy_row(const struct conv_s8 *layer, const int8_t *row, int32_t left,
                        int8_t *column)
{
    const struct kernel_window *w = &layer->window;
    int32_t first = left < 0 ? -left : 0;
    int32_t last = w->in_w - left;
    first = first > w->kernel_w ? w->kernel_w : first;
    last = last > w->kernel_w ? w->kernel_w : last;
    last = last < first ? first : last;
    fill_bytes(column, layer->border, first * w->in_c);
    copy_bytes(column + first * w->in_c, row + (left + first) * w->in_c, (last - first) * w->in_c);
    fill_bytes(column + last * w->in_c, layer->border, (w->kernel_w - last) * w->in_c);
    return column + w->kernel_w * w->in_c;
}

static int8_t *copy_row_dilated(const struct conv_s8 *layer, const int8_t *row, int32_t left,
                                int8_t *column)
{
    const struct kernel_window *w = &layer->window;
    for (int32_t tap = 0; tap < w->kernel_w; tap++, column += w->in_c) {
        const int32_t x = left + tap * w->dilation_w;
        if (x >= 0 && x < w->in_w)
            copy_bytes(column, row + x * w->in_c, w->in_c);
        else
            fill_bytes(column, layer->border, w->in_c);
    }
    return column;
}

static void copy_window(const struct conv_s8 *layer, const int8_t *input, int32_t position,
                        int8_t *column)
{
    const struct kernel_window *w = &layer->window;
    const int32_t top = position / w->out_w * w->stride_h - w->pad_top;
    const int32_t left = position % w->out_w * w->stride_w - w->pad_left;
    for (int32_t tap = 0; tap < w->kernel_h; tap++) {
        const int32_t y = top + tap * w->dilation_h;
        const int8_t *row = input + y * w->in_w * w->in_c;
        if (y < 0 || y >= w->in_h) {
            fill_bytes(column, layer->border, w->kernel_w * w->in_c);
            column += w->kernel_w * w->in_c;
        } else if (w->dilation_w == 1) {
            column = copy_row(layer, row, left, column);
        } else {
            column = copy_row_dilated(layer, row, left, column);
        }
    }
}

void conv_s8(const struct conv_s8 *layer, const int8_t *input, int8_t *output, int8_t *columns)
{
    const struct kernel_window *w = &layer->window;
    const int32_t positions = w->out_h * w->out_w;
    struct matmul_s8 product = {
        .rows = 2, .depth = w->kernel_h * w->kernel_w * w->in_c, .columns = w->out_c,
        .weights = layer->weights, .bias = layer->bias, .requant = layer->requant};
    int32_t position = 0;
#if CONV_TILE != 2
    for (; position + CONV_TILE <= positions; position += CONV_TILE) {
        for (int32_t row = 0; row < CONV_TILE; row++)
            copy_window(layer, input, position + row, columns + row * product.depth);
        product.rows = CONV_TILE;
        matmul_tile_s8(&product, columns, output + position * w->out_c);
    }
    for (; position < positions; position++) {
        product.rows = 1;
        copy_window(layer, input, position, columns);
        matmul_s8(&product, columns, output + position * w->out_c);
    }
#else
    for (; position + 1 < positions; position += 2) {
        copy_window(layer, input, position, columns);
        copy_window(layer, input, position + 1, columns + product.depth);
        matmul_s8(&product, columns, output + position * w->out_c);
    }
    if (position < positions) {
        product.rows = 1;
        copy_window(layer, input, position, columns);
        matmul_s8(&product, columns, output + position * w->out_c);
    }
#endif
}
