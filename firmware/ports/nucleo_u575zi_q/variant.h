/* ST NUCLEO-U575ZI-Q (UM2861). */
#define VARIANT_NAME "nucleo_u575zi_q"
#include "usart1.h"
