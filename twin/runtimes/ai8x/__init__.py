"""ADI's ai8x accelerators (MAX78000, MAX78002): their cycle formula, and what their tool maps."""
