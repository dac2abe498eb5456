/* int8 matrix product: fully connected layers, 1x1 convolutions and im2col'd convolutions. */
#include "dot.h"
#include "integer.h"

static void multiply_pair(const struct matmul_s8 *layer, const int8_t *input, int8_t *output)
{
    const int32_t depth = layer->depth, columns = layer->columns;
    const int8_t *weights = layer->weights;
    int32_t column = 0;
    for (; column + 1 < columns; column += 2, weights += 2 * depth) {
        const int32_t b0 = layer->bias[column], b1 = layer->bias[column + 1];
        int32_t sums[2][2] = {{b0, b1}, {b0, b1}};
        dot_2x2(input, weights, depth, sums);
        output[column] = requantise(&layer->requant, column, sums[0][0]);
        output[column + 1] = requantise(&layer->requant, column + 1, sums[0][1]);
        output[columns + column] = requantise(&layer->requant, column, sums[1][0]);
        output[columns + column + 1] = requantise(&layer->requant, column + 1, sums[1][1]);
    }
    if (column < columns) {
        const int32_t bias = layer->bias[column];
        output[column] = requantise(&layer->requant, column, bias + dot_1x1(input, weights, depth));
        output[columns + column] = requantise(
            &layer->requant, column, bias + dot_1x1(input + depth, weights, depth));
    }
}

static void multiply_row(const struct matmul_s8 *layer, const int8_t *input, int8_t *output)
{
    const int32_t depth = layer->depth, columns = layer->columns;
    const int8_t *weights = layer->weights;
    int32_t column = 0;
    for (; column + 1 < columns; column += 2, weights += 2 * depth) {
        int32_t sums[2] = {layer->bias[column], layer->bias[column + 1]};
        dot_1x2(input, weights, depth, sums);
        output[column] = requantise(&layer->requant, column, sums[0]);
        output[column + 1] = requantise(&layer->requant, column + 1, sums[1]);
    }
    if (column < columns)
        output[column] = requantise(&layer->requant, column,
                                    layer->bias[column] + dot_1x1(input, weights, depth));
}

void matmul_s8(const struct matmul_s8 *layer, const int8_t *input, int8_t *output)
{
    int32_t row = 0;
    for (; row + 1 < layer->rows; row += 2) {
        multiply_pair(layer, input, output);
        input += 2 * layer->depth;
        output += 2 * layer->columns;
    }
    if (row < layer->rows)
        multiply_row(layer, input, output);
}

#if CONV_TILE != 2
/* All rows of a tile with two columns of weights, then the next two: weights leave their memory
 * once a tile. CONV_TILE is 1 or even. */
void matmul_tile_s8(const struct matmul_s8 *layer, const int8_t *input, int8_t *output)
{
#if CONV_TILE == 1
    multiply_row(layer, input, output);
#else
    const int32_t depth = layer->depth, columns = layer->columns;
    const int8_t *weights = layer->weights;
    int32_t column = 0;
    for (; column + 1 < columns; column += 2, weights += 2 * depth) {
        const int32_t b0 = layer->bias[column], b1 = layer->bias[column + 1];
        const int8_t *rows = input;
        int8_t *to = output + column;
        for (int32_t row = 0; row < CONV_TILE; row += 2, rows += 2 * depth, to += 2 * columns) {
            int32_t sums[2][2] = {{b0, b1}, {b0, b1}};
            dot_2x2(rows, weights, depth, sums);
            to[0] = requantise(&layer->requant, column, sums[0][0]);
            to[1] = requantise(&layer->requant, column + 1, sums[0][1]);
            to[columns] = requantise(&layer->requant, column, sums[1][0]);
            to[columns + 1] = requantise(&layer->requant, column + 1, sums[1][1]);
        }
    }
    if (column < columns) {
        const int32_t bias = layer->bias[column];
        for (int32_t row = 0; row < CONV_TILE; row++)
            output[row * columns + column] = requantise(
                &layer->requant, column, bias + dot_1x1(input + row * depth, weights, depth));
    }
#endif
}
#endif
