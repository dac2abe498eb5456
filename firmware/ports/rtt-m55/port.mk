ARCH := arm
CORE := cortex-m55
FPU := auto
FAMILY := cortex_m rtt
ZIG_FEATURES := +mve_fp
