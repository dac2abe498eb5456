"""Graphs changed before anything runs: as code generators do, and as `network.` paths ask."""
