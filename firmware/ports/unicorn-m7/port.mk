ARCH := arm
CPU := -mcpu=cortex-m7 -mfpu=fpv5-sp-d16 -mfloat-abi=hard
FAMILY := cortex_m unicorn
