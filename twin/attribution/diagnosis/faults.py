"""What a fault of a set-up is, and how likely each kind is before any evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from twin.attribution.diagnosis.error_model import ErrorModel
from twin.deployment.deployment import Deployment

DECLARED = "as declared"
UNKNOWN = "none of these"
ONE_LAYER = "one layer"
COUNTER = "counter"
JOINED = " and "
"""Between the kinds and the names of two faults at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A hypothesis.

    Parameters
    ----------
    kind : str
        "placement", "cache off", "wait states", "prefetch", "flash width", "clock", "SIMD",
        "optimisation", "reference kernels", "-O0", "throttling", "interrupts", "load",
        `COUNTER`, `ONE_LAYER`, `DECLARED`, `UNKNOWN`, or two of them.
    name : str
        What exactly.
    remedy : str
        What to check or change.
    deployment : Deployment or None
        What would run instead; None: as asked for.
    versus : Deployment or None
        What its effect is the change from; None: what was asked for. Compiled kernels have no
        other form to lower, so another library's two forms stand for the change.
    slowdown, slowdown_sd : float
        Logarithm of what the core's own work takes besides, and its spread.
    slowdown_of : tuple of (str, float)
        The same by family of kernels, where it is known.
    stretch : float
        Logarithm of what everything takes besides, give or take half of it.
    counted : float
        Logarithm of how often cycles and time are counted: exact.
    counts_all : bool
        Instructions and misses are counted as often: runs were added up.
    wait_cycles : float
        Cycles each access to a memory on a bus waits besides, give or take half of it.
    rebuilds : bool
        Other kernels run.
    unhides : bool
        No waits of flash are left that a prefetch hides.
    drifts, scatters, shifts_clock : bool
        Marks it leaves in the runs and in the clock.
    errors : ErrorModel or None
        How far its effect may be off, besides what memories and clocks may be.
    changes : tuple of (str, object)
        What makes its deployment of the one asked for, by dotted path; none where it has none.
    doubted : float
        Logarithm of how likely a header says what it says where this is so.
    """

    kind: str
    name: str
    remedy: str
    deployment: Deployment | None = None
    versus: Deployment | None = None
    slowdown: float = 0.0
    slowdown_sd: float = 0.0
    slowdown_of: tuple[tuple[str, float], ...] = ()
    stretch: float = 0.0
    counted: float = 0.0
    counts_all: bool = False
    wait_cycles: float = 0.0
    rebuilds: bool = False
    unhides: bool = False
    drifts: bool = False
    scatters: bool = False
    shifts_clock: bool = False
    errors: ErrorModel | None = None
    changes: tuple[tuple[str, object], ...] = ()
    doubted: float = 0.0


PRIOR = {DECLARED: 0.38, UNKNOWN: 0.10}
"""Before any evidence; what is left is shared by the other kinds, and equally within a kind."""

RARE: Mapping[str, float] = {
    "wait states": 0.4, "prefetch": 0.4, "flash width": 0.4, "load": 0.4, "throttling": 0.5,
    COUNTER: 0.04, ONE_LAYER: 0.4}
"""Share of an equal part the rarer kinds have: assumed."""

ADDED_UP = 0.1
"""Share of wrong counters that are wrong alike, as where runs are added up: assumed. A prescaler or
another unit is of one counter; other kernels change instructions as they change cycles, too."""

PAIRS_PRIOR = 0.25
"""Of two faults at once, all pairs of kinds together.

Learnt, with `PRIOR` and the tempers, as what makes planted kinds most probable
(`benchmarks.diagnosis`, seeds 11 to 16): at 0.06, a second fault that costs a tenth of the first
was ruled out before it was looked at, and the first was stated alone at 0.9 where it was one of
two in a third of the cases."""


def prior_of(faults: tuple[Fault, ...]) -> tuple[float, ...]:
    """Return the prior probability of each, summing to 1; pairs share what is theirs."""
    pairs = [fault for fault in faults if JOINED in fault.kind]
    others = sorted({fault.kind for fault in faults if JOINED not in fault.kind} - set(PRIOR))
    left = 1.0 - sum(PRIOR.values()) - (PAIRS_PRIOR if pairs else 0.0)
    share = left / max(math.fsum(RARE.get(kind, 1.0) for kind in others), 1e-9)
    sizes = {fault.kind: sum(other.kind == fault.kind for other in faults) for fault in faults}
    every = [fault.counts_all for fault in faults if fault.kind == COUNTER]
    possible = max(len(others) * (len(others) - 1) / 2, 1.0)
    weights = []
    for fault in faults:
        if JOINED in fault.kind:  # one of each kind's variants was chosen: the others count as well
            weights.append(PAIRS_PRIOR / possible / math.prod(
                sizes.get(kind, 1) for kind in fault.kind.split(JOINED)))
        else:
            part = 1 / sizes[fault.kind]
            if fault.kind == COUNTER and len(set(every)) > 1:
                part = (ADDED_UP if fault.counts_all else 1 - ADDED_UP) / every.count(
                    fault.counts_all)
            weights.append(PRIOR.get(fault.kind, share * RARE.get(fault.kind, 1.0)) * part)
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


def join_faults(first: Fault, second: Fault) -> Fault:
    """Return both at once; what they do together is not predicted but joined.

    Its changes are those of both, where both are changes of one deployment; else it has none.
    """
    return Fault(
        kind=first.kind + JOINED + second.kind, name=first.name + JOINED + second.name,
        remedy=f"{first.remedy}; then {second.remedy}",
        deployment=first.deployment or second.deployment, versus=first.versus or second.versus,
        slowdown=first.slowdown + second.slowdown,
        slowdown_sd=math.hypot(first.slowdown_sd, second.slowdown_sd),
        slowdown_of=first.slowdown_of or second.slowdown_of,
        stretch=first.stretch + second.stretch, counted=first.counted + second.counted,
        wait_cycles=first.wait_cycles + second.wait_cycles,
        rebuilds=first.rebuilds or second.rebuilds,
        errors=first.errors or second.errors,
        changes=(*first.changes, *second.changes) if first.changes and second.changes else (),
        doubted=first.doubted + second.doubted,
        unhides=first.unhides or second.unhides, drifts=first.drifts or second.drifts,
        scatters=first.scatters or second.scatters,
        shifts_clock=first.shifts_clock or second.shifts_clock)
