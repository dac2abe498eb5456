ARCH := riscv
RISCV := -march=rv32imc_zicsr -mabi=ilp32 -mcmodel=medany
LINK_RISCV := -march=rv32imc
FAMILY := riscv
ESPTOOL := esp32c3
