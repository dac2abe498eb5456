"""Caches: exact counts from access nests, by any geometry, in one or two levels."""
