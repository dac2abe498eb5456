"""Access nests: address streams, and rewriting them into ones that touch less."""
