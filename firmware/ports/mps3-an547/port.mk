ARCH := arm
CPU := -mcpu=cortex-m55 -mfloat-abi=hard
FAMILY := cortex_m mps
