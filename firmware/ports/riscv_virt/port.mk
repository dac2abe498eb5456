ARCH := riscv
RISCV := -march=rv32imac_zicsr -mabi=ilp32 -mcmodel=medany
# What GCC 12 calls its libraries for that.
LINK_RISCV := -march=rv32imac
FAMILY := riscv
