"""Mutation testing of the modules a bill is made of."""
