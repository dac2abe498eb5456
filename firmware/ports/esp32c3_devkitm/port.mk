ARCH := riscv
CORE := rv32imc
CPU := -march=rv32imc_zicsr -mabi=ilp32 -mcmodel=medany
LINK_CPU := -march=rv32imc
FAMILY := riscv
ESPTOOL := esp32c3
