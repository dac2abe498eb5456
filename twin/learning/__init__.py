"""Learning from measurements: counts by price, overlays, and how sure they make us."""
