/* 96 MHz, as the part's own boot loader leaves it. High performance (250 MHz) wants the vendor's sequence
 * of regulators and trims: link a file that defines SystemInit and SystemCoreClock (EXTRA of the
 * Makefile), which go before these. */
#include "cortex_m.h"

extern uint32_t SystemCoreClock;
__attribute__((weak)) uint32_t SystemCoreClock = 96000000u;
