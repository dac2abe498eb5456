ARCH := riscv
CPU := -march=rv32imac_zicsr -mabi=ilp32 -mcmodel=medany
LINK_CPU := -march=rv32imac -mabi=ilp32  # how GCC 12 names its libraries
FAMILY :=
