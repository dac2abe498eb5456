ARCH := arm
CORE := cortex-m0plus
FPU :=
FAMILY := cortex_m rtt
