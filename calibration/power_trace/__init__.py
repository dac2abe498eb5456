"""Power over time: read from meters, aligned with the board's marks, integrated per layer."""
