ARCH := riscv
RISCV := -march=rv32imc_zicsr -mabi=ilp32 -mcmodel=medany
# What GCC 12 calls its libraries for that.
LINK_RISCV := -march=rv32imc
FAMILY := riscv
