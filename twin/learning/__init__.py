"""Learning from measurements: observations, overlays, portability."""
