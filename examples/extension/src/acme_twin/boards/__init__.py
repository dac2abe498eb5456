"""Board files."""
