"""Neural-ART: the rules of its compiler, and what the compiler writes, read."""

from twin.runtimes.neural_art.rules import NeuralArt as RULES

__all__ = ["RULES"]
