ARCH := arm
CORE := cortex-m4
FPU := fpv4-sp-d16
FAMILY := cortex_m nrf monitors
PYOCD := nrf52840
OPENOCD := interface/jlink.cfg target/nrf52.cfg
