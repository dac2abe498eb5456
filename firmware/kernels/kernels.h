/* Inference kernels: int8 with TFLite's integer semantics, and float. Data are NHWC, one image.
 * SEMANTICS.md states the arithmetic; twin/arithmetic is the same in numpy, bit for bit. */
#ifndef TWIN_KERNELS_H
#define TWIN_KERNELS_H

#include <stdint.h>

#ifndef CONV_TILE
#define CONV_TILE 2  /* windows a convolution copies before it multiplies them */
#endif

/* A sliding window over an image. */
struct kernel_window {
    int32_t in_h, in_w, in_c;
    int32_t out_h, out_w, out_c;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t dilation_h, dilation_w;
    int32_t pad_top, pad_left;
};

/* From a 32-bit sum to a stored value: multiply, shift, add `offset`, clamp. */
struct kernel_requant {
    const int32_t *multiplier;  /* Q0.31, one per channel or one in all */
    const int32_t *shift;       /* > 0: to the left */
    int32_t step;               /* 1: per channel; 0: one in all */
    int32_t offset;             /* zero point of the output */
    int32_t low, high;          /* bounds of the activation */
};

/* `bias` holds bias - zero point of the input x sum of the channel's weights: the kernels below
 * multiply stored values and never see the input's zero point, except to fill borders. */
struct conv_s8 {
    struct kernel_window window;
    const int8_t *weights;      /* [out_c][kernel_h][kernel_w][in_c] */
    const int32_t *bias;        /* [out_c] */
    struct kernel_requant requant;
    int8_t border;              /* zero point of the input */
};

struct matmul_s8 {              /* 1x1 convolution and fully connected layer */
    int32_t rows, depth, columns;  /* input [rows][depth], output [rows][columns] */
    const int8_t *weights;      /* [columns][depth] */
    const int32_t *bias;        /* [columns] */
    struct kernel_requant requant;
    int8_t border;              /* zero point of the input: only CMSIS-NN asks for it */
};

struct depthwise_s8 {           /* out_c = in_c x multiplier */
    struct kernel_window window;
    int32_t multiplier;         /* output channels of one input channel */
    const int8_t *weights;      /* [kernel_h][kernel_w][out_c] */
    const int32_t *bias;        /* [out_c], as the file has it */
    struct kernel_requant requant;
    int32_t input_offset;       /* minus the zero point of the input */
};

struct pool_s8 {
    struct kernel_window window;
    int32_t low, high;
};

struct add_s8 {                 /* sums are taken in units 2^-20 of twice the larger scale */
    int32_t count;
    int32_t offset[2];          /* minus the zero points of the inputs */
    int32_t multiplier[2], shift[2];
    int32_t out_multiplier, out_shift, out_offset;
    int32_t low, high;
};

struct mean_s8 {                /* over height and width */
    int32_t positions, channels;
    int32_t input_offset;       /* minus positions x the zero point of the input */
    struct kernel_requant requant;
};

struct softmax_s8 {
    int32_t rows, depth;
    const uint32_t *exponential; /* [256] exp(-beta x scale x i) in fixed point */
};

struct pad_nhwc {               /* borders of height, width and channels; elements of one byte or 4 */
    int32_t in_h, in_w, in_c;
    int32_t before[3], after[3];
    int32_t element_bytes;
    uint32_t value;             /* the bits of one border element */
};

struct concat_part {            /* copies one input to its place in every row of the output */
    int32_t rows, in_bytes, out_bytes, offset_bytes;
};

struct lookup_s8 {              /* any function of one stored value */
    int32_t count;
    const int8_t *table;        /* [256], by value + 128 */
};

struct quantize_s8 {            /* float32 <-> int8 */
    int32_t count;
    float scale;
    int32_t zero_point;
};

struct conv_f32 {
    struct kernel_window window;
    const float *weights, *bias;
    float low, high;
};

struct matmul_f32 {
    int32_t rows, depth, columns;
    const float *weights, *bias;
    float low, high;
};

struct depthwise_f32 {
    struct kernel_window window;
    int32_t multiplier;
    const float *weights, *bias;
    float low, high;
};

struct pool_f32 {
    struct kernel_window window;
    float low, high;
};

struct add_f32 {
    int32_t count;
    float low, high;
};

struct mean_f32 {
    int32_t positions, channels;
};

struct softmax_f32 {
    int32_t rows, depth;
    float beta;
};

/* `columns` is scratch: 2 x kernel_h x kernel_w x in_c bytes. */
void conv_s8(const struct conv_s8 *layer, const int8_t *input, int8_t *output, int8_t *columns);
void matmul_s8(const struct matmul_s8 *layer, const int8_t *input, int8_t *output);
#if CONV_TILE != 2
void matmul_tile_s8(const struct matmul_s8 *layer, const int8_t *input, int8_t *output);
#endif
void depthwise_s8(const struct depthwise_s8 *layer, const int8_t *input, int8_t *output);
void average_pool_s8(const struct pool_s8 *layer, const int8_t *input, int8_t *output);
void max_pool_s8(const struct pool_s8 *layer, const int8_t *input, int8_t *output);
void add_s8(const struct add_s8 *layer, const int8_t *left, const int8_t *right, int8_t *output);
void mean_s8(const struct mean_s8 *layer, const int8_t *input, int8_t *output);
void softmax_s8(const struct softmax_s8 *layer, const int8_t *input, int8_t *output);
void pad_nhwc(const struct pad_nhwc *layer, const void *input, void *output);
void concat_part(const struct concat_part *layer, const void *input, void *output);
void lookup_s8(const struct lookup_s8 *layer, const int8_t *input, int8_t *output);
void quantize_s8(const struct quantize_s8 *layer, const float *input, int8_t *output);
void dequantize_s8(const struct quantize_s8 *layer, const int8_t *input, float *output);

/* `column` is scratch: kernel_h x kernel_w x in_c floats. */
void conv_f32(const struct conv_f32 *layer, const float *input, float *output, float *column);
void matmul_f32(const struct matmul_f32 *layer, const float *input, float *output);
void depthwise_f32(const struct depthwise_f32 *layer, const float *input, float *output);
void average_pool_f32(const struct pool_f32 *layer, const float *input, float *output);
void max_pool_f32(const struct pool_f32 *layer, const float *input, float *output);
void add_f32(const struct add_f32 *layer, const float *left, const float *right, float *output);
void mean_f32(const struct mean_f32 *layer, const float *input, float *output);
void softmax_f32(const struct softmax_f32 *layer, const float *input, float *output);

#endif
