"""What a diagnosis rests on, and counts of instructions and misses where a core has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from calibration.measurement.measurement import Measurement
from hwmodels.frozen import entity
from twin.attribution.diagnosis.fault_effects import Effect, Pattern
from twin.attribution.diagnosis.faults import MOVED, ErrorModel, Fault
from twin.attribution.diagnosis.likelihood import FULL_EFFECT
from twin.attribution.diagnosis.marks import Marks


@entity
class Evidence:
    """What faults are weighed by.

    Parameters
    ----------
    declared
        What is predicted as declared.
    reference
        Of a measurement known to be right.
    errors
        How far predictions may be off.
    marks, right
        Of what was measured, and of what is known to be right.
    also
        Of a second measurement, taken otherwise.
    priors
        Of kinds, as a user states them.
    masked
        Interrupts were masked in it.
    placed
        Of a second measurement: weights or arena lie elsewhere than in the first.
    """

    pattern: Pattern
    declared: Effect
    reference: Pattern | None
    errors: ErrorModel
    marks: Marks
    right: Marks | None
    also: Evidence | None = None
    priors: Mapping[str, float] = field(default_factory=dict)
    masked: bool = False
    placed: bool = False

    @property
    def counter(self) -> str:
        """What was measured, as `COUNTED` has it."""
        return "cycles" if self.pattern.quantity != "time" else (
            "ticks" if self.marks.ticked else "time")


def list_evidence(pattern: Pattern, measurement: Measurement,
                  healthy: Measurement | None) -> tuple[str, ...]:
    """Return what a diagnosis rests on, a phrase each: the pattern first, then what is beside it.

    Parameters
    ----------
    measurement, healthy
        Whose runs and header are read.
    """
    facts = measurement.header.facts
    over = "of the whole network" if pattern.layers == (None,) else "per layer"
    runs = max(map(measurement.count, ("cpu_cycles", "latency", "timer_ticks")))
    counted = measurement.count("interrupts")
    return tuple(text for text, there in (
        (f"{pattern.quantity} {over}", True),
        *((name, True) for name in pattern.counted), ("counted interrupts", counted),
        ("cycles of interrupts (DWT)", not counted and measurement.count("dwt_exccnt")),
        (f"scatter and drift of {runs} runs", runs > 1),
        ("clock timed by the host", "clock_by_host" in facts),
        ("clock as the header states it", "clock_by_host" not in facts
         and measurement.header.clocks_hz),
        ("compiler and level of the header", facts.get("compiler")),
        ("a measurement known to be right", healthy is not None)) if there)


def compare_counts(fault: Fault, effect: Effect,
                    evidence: Evidence) -> tuple[tuple[float, float], ...]:
    """How far counts of the whole network are off, as logarithms, and how far they may be."""
    pattern, reference, declared = evidence.pattern, evidence.reference, evidence.declared
    own = evidence.errors if reference is None else None
    moved = min(1.0, float(np.abs(effect.logs - declared.logs).max()) / FULL_EFFECT)
    parts = [(fault.errors, 1.0)] if fault.errors else []
    parts += [(MOVED, moved)] if fault.deployment else []
    found = []
    if pattern.instructions and effect.instructions and declared.instructions:
        known = declared.instructions if reference is None else reference.instructions
        if known:
            off = math.log(pattern.instructions / known) - math.log(
                effect.times * effect.instructions / declared.instructions)
            found.append((off, math.hypot(own.instructions if own else 0.01, fault.slowdown_sd,
                                          *(part.instructions * by for part, by in parts))))
    looked = max(effect.lookups, declared.lookups)
    if pattern.misses is not None and looked:
        off = math.log(pattern.misses + 1e-3 * looked) - math.log(_misses(effect, evidence)
                                                                  + 1e-3 * looked)
        found.append((off, math.hypot(own.misses if own else 0.05,
                                      *(part.misses * by for part, by in parts))))
    return tuple(found)


def _misses(effect: Effect, evidence: Evidence) -> float:
    """Lines a fault lets the cache fill; by what is known to be right, where there is such."""
    declared, reference = evidence.declared, evidence.reference
    if reference is None or reference.misses is None:
        return effect.times * effect.misses
    least = 1e-3 * max(effect.lookups, declared.lookups, 1e3)
    return effect.times * max(
        (effect.misses + least) / (declared.misses + least) * (reference.misses + least) - least,
        0.0)


def describe_counts(effect: Effect, evidence: Evidence) -> tuple[str, ...]:
    """Return counts of the whole network beside those a fault would make, a phrase each."""
    pattern, reference, declared = evidence.pattern, evidence.reference, evidence.declared
    names = []
    known = declared.instructions if reference is None else reference.instructions
    if pattern.instructions and known and declared.instructions:
        names.append(f"instructions {pattern.instructions / known:.2f} x those "
                     f"{'predicted' if reference is None else 'known'}, "
                     f"{effect.times * effect.instructions / declared.instructions:.2f} x expected")
    if pattern.misses is not None and max(effect.lookups, declared.lookups):
        names.append(f"{pattern.misses:,.0f} cache lines filled, "
                     f"{_misses(effect, evidence):,.0f} expected")
    return tuple(names)
