ARCH := riscv
CORE := rv32imc
CPU := -march=rv32imc_zicsr -mabi=ilp32 -mcmodel=medany
# What GCC 12 calls its libraries for that.
LINK_CPU := -march=rv32imc
FAMILY := riscv
