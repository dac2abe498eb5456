#include "nrf.h"
#include "variant.h"

void start_core_clock(void)
{
    REGISTER(CLOCK_BASE + 0x558) = 0;             /* HFCLKCTRL: 128 MHz undivided */
    barrier();
}
