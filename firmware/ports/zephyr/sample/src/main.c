#include "twin_zephyr.h"

int main(void)
{
	twin_zephyr_run();
	return 0;
}
