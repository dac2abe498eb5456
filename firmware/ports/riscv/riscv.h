/* What RISC-V ports share. */
#ifndef TWIN_RISCV_H
#define TWIN_RISCV_H

#include "port.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

void copy_weights(void);

#endif
