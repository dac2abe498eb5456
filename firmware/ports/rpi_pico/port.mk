ARCH := arm
CORE := cortex-m0plus
FPU :=
FAMILY := cortex_m pico
PYOCD := rp2040
OPENOCD := interface/cmsis-dap.cfg target/rp2040.cfg
# boot.c: the boot ROM wants a checksum in the last four of the first 256 bytes.
BOOT_CHECKSUM := 256
