ARCH := arm
CORE := cortex-m33
FPU := fpv5-sp-d16
FAMILY := cortex_m pico
PYOCD := rp2350
OPENOCD := interface/cmsis-dap.cfg target/rp2350.cfg
