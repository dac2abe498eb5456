ARCH := arm
CORE := cortex-m4
FPU := fpv4-sp-d16
FAMILY := cortex_m stm32 stm32_art
PYOCD := stm32l4r5zitx
OPENOCD := board/st_nucleo_l4.cfg
