"""Loops of the simulations that are compiled, and the meaning of their arrays."""
