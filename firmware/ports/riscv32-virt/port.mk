ARCH := riscv
CPU := -march=rv32imac -mabi=ilp32 -mcmodel=medany
DEFINES += -Wa,-march=rv32imac_zicsr
FAMILY :=
