/* Operators that only move values. */
#include "copy.h"
#include "kernels.h"

static int8_t *fill(int8_t *to, uint32_t value, int32_t element_bytes, int32_t count)
{
    if (element_bytes == 1) {
        fill_bytes(to, (int8_t)value, count);
        return to + count;
    }
    for (int32_t i = 0; i < count; i++, to += 4)
        __builtin_memcpy(to, &value, 4);
    return to;
}

void pad_nhwc(const struct pad_nhwc *layer, const void *input, void *output)
{
    const int32_t bytes = layer->element_bytes;
    const int32_t channels = layer->before[2] + layer->in_c + layer->after[2];
    const int32_t row = (layer->before[1] + layer->in_w + layer->after[1]) * channels;
    const int8_t *from = input;
    int8_t *to = fill(output, layer->value, bytes, layer->before[0] * row);
    for (int32_t y = 0; y < layer->in_h; y++) {
        to = fill(to, layer->value, bytes, layer->before[1] * channels);
        for (int32_t x = 0; x < layer->in_w; x++) {
            to = fill(to, layer->value, bytes, layer->before[2]);
            copy_bytes(to, from, layer->in_c * bytes);
            from += layer->in_c * bytes;
            to = fill(to + layer->in_c * bytes, layer->value, bytes, layer->after[2]);
        }
        to = fill(to, layer->value, bytes, layer->after[1] * channels);
    }
    fill(to, layer->value, bytes, layer->after[0] * row);
}

void concat_part(const struct concat_part *layer, const void *input, void *output)
{
    const int8_t *from = input;
    int8_t *to = (int8_t *)output + layer->offset_bytes;
    for (int32_t row = 0; row < layer->rows; row++) {
        copy_bytes(to, from, layer->in_bytes);
        from += layer->in_bytes;
        to += layer->out_bytes;
    }
}
