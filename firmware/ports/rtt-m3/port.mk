ARCH := arm
CORE := cortex-m3
FPU :=
FAMILY := cortex_m rtt
