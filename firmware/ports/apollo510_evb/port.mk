ARCH := arm
CORE := cortex-m55
FPU := auto
FAMILY := cortex_m rtt
PYOCD := ap510nfa-cbr
OPENOCD := interface/jlink.cfg target/ambiq_apollo510.cfg
