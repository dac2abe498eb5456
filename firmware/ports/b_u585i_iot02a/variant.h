/* ST B-U585I-IOT02A (UM2839). */
#define VARIANT_NAME "b_u585i_iot02a"
#include "usart1.h"
