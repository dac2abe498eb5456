/* Dot products of int8 rows: the inner loops of every matrix product.
 *
 * dot_1x1, dot_1x2, dot_2x2 multiply one or two rows of `a` with one or two rows of `w`; a second
 * row starts `depth` bytes after the first. Sums are added to `sums[row of a][row of w]`. */
#ifndef TWIN_DOT_H
#define TWIN_DOT_H

#include <stdint.h>

#if defined(__ARM_FEATURE_MVE) && !defined(KERNEL_PORTABLE)
#include "dot_mve.h"
#elif defined(__ARM_FEATURE_DSP) && !defined(KERNEL_PORTABLE)
#include "dot_dsp.h"
#else
#include "dot_portable.h"
#endif

#endif
