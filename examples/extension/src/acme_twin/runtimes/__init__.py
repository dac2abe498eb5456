"""Runtime files."""
