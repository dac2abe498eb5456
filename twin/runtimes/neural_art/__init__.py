"""Neural-ART: the rules of its compiler, and what the compiler writes, read."""
