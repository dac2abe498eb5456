"""How far predictions may be off, by what stands behind them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorModel:
    """How far a prediction may be off, as standard deviations of logarithms.

    Parameters
    ----------
    common, family, layer : float
        Shared by all layers; by one family of kernels; of one layer.
    instructions, misses : float
        Of those counts.
    source : str
        Why these.
    """

    common: float
    family: float
    layer: float
    instructions: float
    misses: float
    source: str


STAND_IN = ErrorModel(common=0.4, family=0.5, layer=0.5, instructions=0.35, misses=0.8,
                      source="another kernel library stands in for what ran")

LIBRARY = ErrorModel(common=0.3, family=0.25, layer=0.1, instructions=0.25, misses=0.5,
                     source="stated prices, the library's structure known or assumed")

BINARY = ErrorModel(common=0.05, family=0.05, layer=0.04, instructions=0.03, misses=0.2,
                    source="kernels read from the binary")

HEALTHY = ErrorModel(common=0.01, family=0.01, layer=0.01, instructions=0.01, misses=0.05,
                     source="a measurement known to be right")

MOVED = ErrorModel(common=0.02, family=0.04, layer=0.03, instructions=0.02, misses=0.5,
                   source="effect of other memories, caches or clocks")

REBUILT = ErrorModel(common=0.2, family=0.35, layer=0.1, instructions=0.25, misses=0.8,
                     source="effect of other kernels")

NOTHING_KNOWN = ErrorModel(common=0.8, family=0.5, layer=0.3, instructions=0.8, misses=1.5,
                           source="anything may have happened")
