"""Hidden costs planted on replayed binaries, and what a calibration makes of them."""
