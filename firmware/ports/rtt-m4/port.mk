ARCH := arm
CORE := cortex-m4
FPU := fpv4-sp-d16
FAMILY := cortex_m rtt
