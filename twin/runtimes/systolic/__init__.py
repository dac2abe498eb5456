"""Systolic arrays: what a network takes on one, by how operands move through it."""
