"""What a model file is: graph, operators, rewrites, readers, writers, zoo, arithmetic."""
