ARCH := arm
CORE := cortex-m7
FPU := fpv5-d16
FAMILY := cortex_m stm32 stm32_l1 stm32_h7
PYOCD := stm32h723zgtx
OPENOCD := interface/stlink.cfg target/stm32h7x.cfg
