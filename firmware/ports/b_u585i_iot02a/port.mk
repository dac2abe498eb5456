ARCH := arm
CORE := cortex-m33
FPU := fpv5-sp-d16
FAMILY := cortex_m stm32 stm32_u5 monitors
PYOCD := stm32u585aiix
OPENOCD := interface/stlink.cfg target/stm32u5x.cfg
