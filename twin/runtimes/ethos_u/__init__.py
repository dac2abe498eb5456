"""Ethos-U: what Vela compiles a network into, read from its command stream, as tasks."""
