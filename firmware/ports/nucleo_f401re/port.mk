ARCH := arm
CORE := cortex-m4
FPU := fpv4-sp-d16
FAMILY := cortex_m stm32 stm32_art
PYOCD := stm32f401retx
OPENOCD := board/st_nucleo_f4.cfg
