"""Numba only: native callbacks of the emulator."""
