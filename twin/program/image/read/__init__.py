"""What a built image will do, read from its machine code without running it."""
