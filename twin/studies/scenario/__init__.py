"""A device over time: sensor, buffers, inferences, sleep, clocks, heat and a battery."""
