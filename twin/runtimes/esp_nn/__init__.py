"""ESP-NN 1.2.3 as its build chooses it: generic C on RISC-V, assembly with vectors on the ESP32-S3.

The generic C's instructions are counted as those of `twin.runtimes.esp_nn_ansi`; the assembly's are
read from its sources, level by level. Scratch buffers are worked in but not simulated as accesses.
"""
