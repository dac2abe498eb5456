"""Our firmware as a program: built from a network, read from its machine code."""
