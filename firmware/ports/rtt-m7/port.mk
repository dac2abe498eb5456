ARCH := arm
CORE := cortex-m7
FPU := fpv5-sp-d16
FAMILY := cortex_m rtt
