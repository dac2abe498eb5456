/* The core behind a port through a debug probe. */
#include "riscv.h"
