"""Micro-benchmarks: probes, and what they say of a machine."""
