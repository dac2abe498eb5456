/* int8 mean over height and width, and softmax. */
#include "integer.h"

void mean_s8(const struct mean_s8 *layer, const int8_t *input, int8_t *output)
{
    for (int32_t channel = 0; channel < layer->channels; channel++) {
        int32_t sum = layer->input_offset;
        const int8_t *value = input + channel;
        for (int32_t i = 0; i < layer->positions; i++, value += layer->channels)
            sum += *value;
        output[channel] = requantise(&layer->requant, channel, sum);
    }
}

/* Output scale 1/256, zero point -128. The table's entries times `depth` stay below 2^31, and
 * below 2^24 each, so that every step fits 32 bits. */
void softmax_s8(const struct softmax_s8 *layer, const int8_t *input, int8_t *output)
{
    for (int32_t row = 0; row < layer->rows; row++) {
        int32_t most = INT8_MIN;
        for (int32_t i = 0; i < layer->depth; i++)
            most = input[i] > most ? input[i] : most;
        uint32_t sum = 0;
        for (int32_t i = 0; i < layer->depth; i++)
            sum += layer->exponential[most - input[i]];
        for (int32_t i = 0; i < layer->depth; i++) {
            const uint32_t share = layer->exponential[most - input[i]] * 256u;
            const int32_t value = (int32_t)((share + sum / 2u) / sum) - 128;
            output[i] = (int8_t)(value > 127 ? 127 : value);
        }
        input += layer->depth;
        output += layer->depth;
    }
}
