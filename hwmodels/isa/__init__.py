"""Instruction sets: assembly text read as instructions."""
