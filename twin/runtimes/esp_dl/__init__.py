"""Espressif's ESP-DL: 16 outputs a 128-bit vector, every filter read for each pixel."""
