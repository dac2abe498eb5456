ARCH := arm
CORE := cortex-m33
FPU := fpv5-sp-d16
FAMILY := cortex_m rtt
PYOCD := r7fa6m4af
OPENOCD := interface/jlink.cfg target/renesas_ra6m4.cfg
