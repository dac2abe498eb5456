"""What the command does, as functions: one module per verb, named lazily by `twin`."""
