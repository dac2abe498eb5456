"""What a diagnosis rests on, and counts of instructions and misses where a core has them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from twin.attribution.error_model import MOVED, ErrorModel
from twin.attribution.fault_effects import Effect
from twin.attribution.faults import Fault
from twin.attribution.likelihood import FULL_EFFECT
from twin.attribution.marks import Marks
from twin.attribution.pattern import Pattern


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What faults are weighed by.

    Parameters
    ----------
    pattern : Pattern
        What was measured.
    declared : Effect
        What is predicted as declared.
    hidden : numpy.ndarray
        Shape (layers,): logarithm of what a prefetch may hide.
    reference : Pattern or None
        Of a measurement known to be right.
    errors : ErrorModel
        How far predictions may be off.
    marks, right : Marks
        Of what was measured, and of what is known to be right.
    """

    pattern: Pattern
    declared: Effect
    hidden: np.ndarray
    reference: Pattern | None
    errors: ErrorModel
    marks: Marks
    right: Marks | None


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
                effect.instructions / declared.instructions)
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
        return effect.misses
    least = 1e-3 * max(effect.lookups, declared.lookups, 1e3)
    return max((effect.misses + least) / (declared.misses + least) * (reference.misses + least)
               - least, 0.0)


def describe_counts(effect: Effect, evidence: Evidence) -> tuple[str, ...]:
    """Return counts of the whole network beside those a fault would make, a phrase each."""
    pattern, reference, declared = evidence.pattern, evidence.reference, evidence.declared
    names = []
    known = declared.instructions if reference is None else reference.instructions
    if pattern.instructions and known and declared.instructions:
        names.append(f"instructions {pattern.instructions / known:.2f} x those "
                     f"{'predicted' if reference is None else 'known'}, "
                     f"{effect.instructions / declared.instructions:.2f} x expected")
    if pattern.misses is not None and max(effect.lookups, declared.lookups):
        names.append(f"{pattern.misses:,.0f} cache lines filled, "
                     f"{_misses(effect, evidence):,.0f} expected")
    return tuple(names)
