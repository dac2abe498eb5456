ARCH := arm
CORE := cortex-m55
FPU := auto
FAMILY := cortex_m mps
