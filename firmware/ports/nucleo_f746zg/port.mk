ARCH := arm
CORE := cortex-m7
FPU := fpv5-sp-d16
FAMILY := cortex_m stm32 stm32_l1
PYOCD := stm32f746zgtx
OPENOCD := board/st_nucleo_f7.cfg
