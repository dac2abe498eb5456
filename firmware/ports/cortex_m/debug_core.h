/* The core behind a port through a debug probe. */
#include "cortex_m.h"
