ARCH := arm
CPU := -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard
FAMILY := cortex_m mps
