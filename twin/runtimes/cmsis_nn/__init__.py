"""Arm CMSIS-NN int8 kernels: how each operator becomes instructions and accesses.

Operators that are not here have no CMSIS-NN function; a runtime falls back to its portable
reference kernels for them, as TFLite Micro does.
"""
