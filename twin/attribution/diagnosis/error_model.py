"""How far predictions may be off, by what stands behind them."""

from __future__ import annotations

from collections.abc import Mapping
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
    slope : float
        Per logarithm of multiply-accumulates a cycle, within a family: other kernels have another
        share of work around their inner loop.
    effect : float
        Of the size of a fault's effect, as a share of its logarithm: over all layers, and over
        those of a family.
    faster : float
        Share of the whole's deviation that holds toward less time than predicted.
    """

    common: float
    family: float
    layer: float
    instructions: float
    misses: float
    source: str
    slope: float = 0.0
    effect: float = 0.15
    faster: float = 1.0


STAND_IN = ErrorModel(common=0.4, family=0.5, layer=0.5, instructions=0.35, misses=0.8, effect=0.4,
                      faster=0.5, source="another kernel library stands in for what ran")

LIBRARY = ErrorModel(common=0.2, family=0.12, layer=0.04, instructions=0.25, misses=0.5,
                     effect=0.12, source="unsure prices, the library's structure known or assumed")

BINARY = ErrorModel(common=0.13, family=0.04, layer=0.048, instructions=0.03, misses=0.2,
                    effect=0.09, source="kernels read from the binary, prices of instructions and "
                                        "memories unsure")

MOVED = ErrorModel(common=0.016, family=0.024, layer=0.01, instructions=0.02, misses=0.5,
                   source="effect of other memories, caches or clocks")

COMPILED = ErrorModel(common=0.085, family=0.03, layer=0.012, instructions=0.05, misses=0.3,
                      slope=0.05, source="effect of kernels read from their own image")

RELINKED = ErrorModel(common=0.0, family=0.005, layer=0.01, instructions=0.01, misses=0.5,
                      source="effect of code that lies elsewhere")

REBUILT = ErrorModel(common=0.15, family=0.35, layer=0.03, instructions=0.25, misses=0.8,
                     slope=0.35, source="effect of other kernels")

KEPT_IN_MEMORY = ErrorModel(common=0.0, family=0.15, layer=0.05, instructions=0.1, misses=0.8,
                            slope=0.3, source="effect of code that keeps all in memory")

SLOWED = ErrorModel(common=0.0, family=0.3, layer=0.03, instructions=0.25, misses=0.8,
                    slope=0.3, source="effect of code that is slower alike")

HEALTHY_SOURCE = "a measurement known to be right"
REPEATED = 0.004
"""What two measurements of one set-up may differ by in a layer besides the scatter of their runs:
assumed."""

NOTHING_KNOWN = (
    ErrorModel(common=1.0, family=0.1, layer=0.05, instructions=0.5, misses=1.0,
               source="everything alike, as on another board or clock"),
    ErrorModel(common=0.06, family=0.05, layer=0.05, instructions=0.05, misses=0.5,
               source="something small"),
    ErrorModel(common=0.25, family=0.2, layer=0.2, instructions=0.25, misses=1.0,
               source="something"),
    ErrorModel(common=0.8, family=0.5, layer=0.4, instructions=0.8, misses=1.5,
               source="anything may have happened"))
"""Sizes of an effect nobody listed."""

PRICE_SD: Mapping[str, float] = {
    "mac": 0.12, "mac_waste": 0.12, "alu": 0.07, "load_store": 0.15, "branch": 0.24,
    "issue_stall": 0.3, "instruction_fetch": 0.3, "data_refill": 0.3, "write_back": 0.3,
    "flash_wait": 0.3, "sram_wait": 0.7, "external_memory": 0.5, "kernel_call": 0.4}
"""How unsure what each cause costs is on a board that was not calibrated.

These and the errors above began as assumed and were set, by groups, to what gives planted faults of
hidden costs the highest probability (`benchmarks.diagnosis`, seeds 1 to 9, costs drawn from
published timings). Causes those boards have little of stay as assumed."""

HIDING_SD = 0.3
"""How unsure it is how much of its waits a prefetch hides, as a share of what it may hide."""

OTHER_PRICE_SD = 0.3
"""Of causes not listed."""
