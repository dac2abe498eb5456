"""Cores: timing tables, and basic blocks scheduled by them."""
