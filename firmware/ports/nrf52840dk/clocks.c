#include "nrf.h"

void start_core_clock(void)
{
    /* 64 MHz from reset on */
}
