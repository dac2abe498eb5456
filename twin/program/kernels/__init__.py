"""Compiled callbacks of the emulator that runs a program."""
