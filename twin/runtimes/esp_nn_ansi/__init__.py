"""ESP-NN's portable C ("ANSI C"): what each operator executes.

Loops as in the sources, instructions of each level counted on them: compiled by GCC 12.2 -O2 for
RV32IMC and run by `twin predict --elf`, by `python -m benchmarks.operators.esp_nn`. On an Xtensa
they are the same, but that a signed byte takes one more instruction to load and innermost loops
close without any.
"""
