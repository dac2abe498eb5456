#include "stm32.h"
#include "variant.h"

void start_clocks(void)
{
}

void read_part_environment(struct wire_environment_reply *reply)
{
    (void)reply;
}
