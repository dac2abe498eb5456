#include "stm32.h"
#include "variant.h"

void start_clocks(void)
{
}
