ARCH := arm
CORE := cortex-m33
FPU := fpv5-sp-d16
FAMILY := cortex_m nrf monitors
PYOCD := nrf5340_xxaa
OPENOCD := interface/jlink.cfg target/nrf53.cfg
