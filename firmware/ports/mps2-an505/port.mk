ARCH := arm
CPU := -mcpu=cortex-m33 -mfpu=fpv5-sp-d16 -mfloat-abi=hard
FAMILY := cortex_m mps
