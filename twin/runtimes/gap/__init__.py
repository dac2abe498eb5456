"""GAP8 and GAP9: clusters of RI5CY cores with local memory, and NE16 beside them on GAP9."""
