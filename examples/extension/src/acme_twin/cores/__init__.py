"""Core files: YAML in the shape of those the project ships."""
