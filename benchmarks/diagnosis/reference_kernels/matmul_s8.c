/* int8 matrix product as reference code has it. */
#include "integer.h"

void matmul_s8(const struct matmul_s8 *layer, const int8_t *input, int8_t *output)
{
    for (int32_t row = 0; row < layer->rows; row++)
        for (int32_t column = 0; column < layer->columns; column++) {
            int32_t sum = layer->bias[column];
            for (int32_t i = 0; i < layer->depth; i++)
                sum += input[row * layer->depth + i] * layer->weights[column * layer->depth + i];
            output[row * layer->columns + column] = requantise(&layer->requant, column, sum);
        }
}
