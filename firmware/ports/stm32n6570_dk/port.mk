ARCH := arm
CORE := cortex-m55
FPU := auto
FAMILY := cortex_m stm32 stm32_l1
CUBEPROG := MX66UW1G45G_STM32N6570-DK.stldr 0x70000000
