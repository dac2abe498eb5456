"""Loops of the simulations that numba compiles, and the meaning of their arrays."""
