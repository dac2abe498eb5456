"""Prices learnt from measurements, and how sure they are."""
