"""Pricing: events times prices, the bill of each layer and how sure it is."""
