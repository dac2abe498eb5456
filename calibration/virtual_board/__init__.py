"""Boards one can run today: emulated cores and spoilt lines, launched and ended by the toolkit."""
