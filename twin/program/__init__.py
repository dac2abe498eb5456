"""Anybody's program as machine code: run under emulation, and billed by the models of a kernel."""
