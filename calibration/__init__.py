"""Measurements: how they are taken, kept, judged and taught to the prices of hardware."""
