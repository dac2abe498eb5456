"""Typed requests: one dataclass per command, which options, sessions and functions derive from."""
