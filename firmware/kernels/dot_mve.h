/* Dot products on Armv8.1-M with MVE: sixteen values at a time, the rest by predication. */
#include <arm_mve.h>

#define KERNEL_ISA "mve"

static inline int32_t dot_1x1(const int8_t *a, const int8_t *w, int32_t depth)
{
    int32_t sum = 0;
    for (int32_t left = depth; left > 0; left -= 16, a += 16, w += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
        sum = vmladavaq_p_s8(sum, vldrbq_z_s8(a, lanes), vldrbq_z_s8(w, lanes), lanes);
    }
    return sum;
}

static inline void dot_1x2(const int8_t *a, const int8_t *w, int32_t depth, int32_t sums[2])
{
    int32_t s0 = sums[0], s1 = sums[1];
    for (int32_t left = depth; left > 0; left -= 16, a += 16, w += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
        const int8x16_t x = vldrbq_z_s8(a, lanes);
        s0 = vmladavaq_p_s8(s0, x, vldrbq_z_s8(w, lanes), lanes);
        s1 = vmladavaq_p_s8(s1, x, vldrbq_z_s8(w + depth, lanes), lanes);
    }
    sums[0] = s0;
    sums[1] = s1;
}

static inline void dot_2x2(const int8_t *a, const int8_t *w, int32_t depth, int32_t sums[2][2])
{
    int32_t s00 = sums[0][0], s01 = sums[0][1], s10 = sums[1][0], s11 = sums[1][1];
    for (int32_t left = depth; left > 0; left -= 16, a += 16, w += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
        const int8x16_t x0 = vldrbq_z_s8(a, lanes), x1 = vldrbq_z_s8(a + depth, lanes);
        const int8x16_t v0 = vldrbq_z_s8(w, lanes), v1 = vldrbq_z_s8(w + depth, lanes);
        s00 = vmladavaq_p_s8(s00, x0, v0, lanes);
        s01 = vmladavaq_p_s8(s01, x0, v1, lanes);
        s10 = vmladavaq_p_s8(s10, x1, v0, lanes);
        s11 = vmladavaq_p_s8(s11, x1, v1, lanes);
    }
    sums[0][0] = s00;
    sums[0][1] = s01;
    sums[1][0] = s10;
    sums[1][1] = s11;
}
