"""Native callbacks of the emulator."""
