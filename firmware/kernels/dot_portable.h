/* Dot products in plain C. */

#define KERNEL_ISA "portable"

static inline int32_t dot_1x1(const int8_t *a, const int8_t *w, int32_t depth)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < depth; i++)
        sum += a[i] * w[i];
    return sum;
}

static inline void dot_1x2(const int8_t *a, const int8_t *w, int32_t depth, int32_t sums[2])
{
    const int8_t *w1 = w + depth;
    int32_t s0 = sums[0], s1 = sums[1];
    for (int32_t i = 0; i < depth; i++) {
        const int32_t x = a[i];
        s0 += x * w[i];
        s1 += x * w1[i];
    }
    sums[0] = s0;
    sums[1] = s1;
}

static inline void dot_2x2(const int8_t *a, const int8_t *w, int32_t depth, int32_t sums[2][2])
{
    const int8_t *a1 = a + depth, *w1 = w + depth;
    int32_t s00 = sums[0][0], s01 = sums[0][1], s10 = sums[1][0], s11 = sums[1][1];
    for (int32_t i = 0; i < depth; i++) {
        const int32_t x0 = a[i], x1 = a1[i], v0 = w[i], v1 = w1[i];
        s00 += x0 * v0;
        s01 += x0 * v1;
        s10 += x1 * v0;
        s11 += x1 * v1;
    }
    sums[0][0] = s00;
    sums[0][1] = s01;
    sums[1][0] = s10;
    sums[1][1] = s11;
}
