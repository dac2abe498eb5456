"""A measurement: samples, counters, their quality."""
