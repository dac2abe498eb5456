"""C from a graph: source, build, sizes."""
