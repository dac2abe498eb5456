/* A 1x1 convolution as the scratch of X-CUBE-AI's `pw` lets one guess it (4 bytes an input channel: two rows of
 * weights widened to 16 bits; 10 an output channel: folded bias, multiplier, shift), for Cortex-M with DSP.
 * Its loops, by arm-none-eabi-gcc 12.2.1 -O2 -mcpu=cortex-m4, are `widened_*` of
 * twin/runtimes/cmsis_nn/instructions.yaml. Ignores odd channels, odd pixels and channels that are no multiple of four. */
#include <stdint.h>
typedef struct __attribute__((packed)) { int32_t bias, scale; int16_t shift; } channel;  /* 10 bytes a channel */
static inline int32_t smlad(uint32_t a, uint32_t b, int32_t c){ __asm__("smlad %0,%1,%2,%3":"=r"(c):"r"(a),"r"(b),"r"(c)); return c; }
static inline uint32_t sxtb16(uint32_t a){ uint32_t r; __asm__("sxtb16 %0,%1":"=r"(r):"r"(a)); return r; }
static inline uint32_t sxtb16r(uint32_t a){ uint32_t r; __asm__("sxtb16 %0,%1,ror #8":"=r"(r):"r"(a)); return r; }
static inline int8_t finish(int32_t acc, int32_t scale, int shift, int32_t zero){
  int32_t v; __asm__("smmulr %0,%1,%2":"=r"(v):"r"(acc),"r"(scale));
  v = (v + (1 << shift >> 1)) >> shift;
  v += zero; __asm__("ssat %0,#8,%1":"=r"(v):"r"(v)); return v; }
void pw(const int8_t *in, int pixels, int cin, const int8_t *weights, int cout, const channel *par, int32_t zero, int8_t *out, uint32_t *scratch){
  for (int c = 0; c + 1 < cout; c += 2, par += 2) {
    uint32_t *w = scratch;
    for (const int8_t *end = weights + cin; weights < end; weights += 4) {   /* two rows side by side, in the order sxtb16 gives */
      uint32_t a = *(const uint32_t*)weights, b = *(const uint32_t*)(weights + cin);
      *w++ = sxtb16(a); *w++ = sxtb16r(a); *w++ = sxtb16(b); *w++ = sxtb16r(b);
    }
    weights += cin;
    const int8_t *p = in; int8_t *o = out + c;
    for (int n = pixels >> 1; n; n--) {
      int32_t a0 = par[0].bias, a1 = par[1].bias, b0 = a0, b1 = a1;
      const uint32_t *x = scratch; const int8_t *q = p + cin, *end = q;
      while (p != end) {
        uint32_t u = *(const uint32_t*)p, v = *(const uint32_t*)q; p += 4; q += 4;
        uint32_t u0 = sxtb16(u), u1 = sxtb16r(u), v0 = sxtb16(v), v1 = sxtb16r(v);
        uint32_t x0 = *x++, x1 = *x++, y0 = *x++, y1 = *x++;
        a0 = smlad(u0, x0, a0); a0 = smlad(u1, x1, a0); a1 = smlad(u0, y0, a1); a1 = smlad(u1, y1, a1);
        b0 = smlad(v0, x0, b0); b0 = smlad(v1, x1, b0); b1 = smlad(v0, y0, b1); b1 = smlad(v1, y1, b1);
      }
      p = q;
      o[0] = finish(a0, par[0].scale, par[0].shift, zero); o[1] = finish(a1, par[1].scale, par[1].shift, zero);
      o += cout;
      o[0] = finish(b0, par[0].scale, par[0].shift, zero); o[1] = finish(b1, par[1].scale, par[1].shift, zero);
      o += cout;
    }
  }
}
