# STM32F405 as QEMU's netduinoplus2 models it: no clock set-up, which the model does not have.
ARCH := arm
CORE := cortex-m4
FPU := fpv4-sp-d16
FAMILY := cortex_m stm32 stm32_art
