"""Runs that leave a trail: a folder each, with inputs and what stood between; bundles of them."""
