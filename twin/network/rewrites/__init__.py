"""Graphs changed as code generators change them before anything runs."""
