"""What a fault of a set-up is, how likely each kind is, and how far predictions may be off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen
from twin.deployment.deployment import Deployment


@frozen
class ErrorModel:
    """How far a prediction may be off, as standard deviations of logarithms.

    Parameters
    ----------
    common, family, layer
        Shared by all layers; by one family of kernels; of one layer.
    slope
        Per logarithm of multiply-accumulates a cycle, within a family: other kernels have another
        share of work around their inner loop.
    effect
        Of the size of a fault's effect, as a share of its logarithm: over all layers, and over
        those of a family.
    faster
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


_ERRORS = read_yaml_once(Path(__file__).with_name("errors.yaml"))
(STAND_IN, LIBRARY, OPEN_LIBRARY, BINARY, MOVED, COMPILED, RELINKED, REBUILT, KEPT_IN_MEMORY,
 SLOWED, REPLACED, ELSEWHERE) = (ErrorModel(**_ERRORS["known"][name]) for name in (
     "stand_in", "library", "open_library", "binary", "moved", "compiled", "relinked", "rebuilt",
     "kept_in_memory", "slowed", "replaced", "elsewhere"))
NOTHING_KNOWN = tuple(ErrorModel(**errors) for errors in _ERRORS["nothing known"])
"""Sizes of an effect nobody listed."""

HEALTHY_SOURCE = "a measurement known to be right"
REPEATED = 0.004
"""What two measurements of one set-up may differ by in a layer besides the scatter of their runs:
assumed."""

OTHER_IMAGE = 0.025
"""What a layer may differ by in another image of the same kernels besides, where code lies: twice
what layers of hidden boards are off by in the median (seeds 31 to 33), which draw it by image."""

PRICE_SD: Mapping[str, float] = _ERRORS["prices"]
"""How unsure what each cause costs is on a board that was not calibrated."""

HIDING_SD = 1 / math.sqrt(3)
"""How unsure it is how much of its waits a prefetch or a fill hides, as a share of what it may
hide: the root of the mean square where all from what is predicted to nothing is as likely."""

OTHER_PRICE_SD = 0.3
"""Of causes not listed."""


DECLARED = "as declared"
UNKNOWN = "none of these"
FIRST_RUN, OTHER_WORK = "first run", "other work"
"""Of marks in the runs: only the first is slow; and a drift of a core's own cycles, which a clock
that slows down does not make."""
ONE_LAYER, ONE_OPERATOR, EACH_LAYER = "one layer", "one operator", "each layer"
NETWORK, BOARD, RIVAL = "another network", "another board", "another library"
FASTER = "faster library"
COUNTER, UNIT = "counter", "unit"
SLOW_FLASH = "flash slower"
FLASH_KINDS = ("wait states", "prefetch", "flash width")
ONE_FACTOR, FACTOR_KINDS = "clock or counter", ("clock", COUNTER)
NO_CLOCK, NO_CLOCK_KINDS = "placement or wait states", ("placement", "wait states")
GROUPS = {SLOW_FLASH: FLASH_KINDS, ONE_FACTOR: FACTOR_KINDS, NO_CLOCK: NO_CLOCK_KINDS}
"""Kinds that make each read of flash take longer, those that put one factor on all times, and those
under which another clock changes no wait (weights that are not in flash, wait states that stay as
they are); the answer where nothing distinguishes them."""

JOINED = " and "
"""Between the kinds and the names of two faults at once."""


@frozen
class Fault:
    """A hypothesis.

    Parameters
    ----------
    kind
        "placement", "cache off", "wait states", "prefetch", "flash width", "clock", "SIMD",
        "optimisation", "reference kernels", "-O0", "throttling", `OTHER_WORK`, `FIRST_RUN`,
        "interrupts", "load", `COUNTER`, `ONE_LAYER`, `ONE_OPERATOR`, `EACH_LAYER`, `DECLARED`,
        `UNKNOWN`, or two of them.
    remedy
        What to check or change.
    deployment
        What would run instead; None: as asked for.
    versus
        What its effect is the change from; None: what was asked for. Compiled kernels have no
        other form to lower, so another library's two forms stand for the change.
    slowdown, slowdown_sd
        Logarithm of what the core's own work takes besides, and its spread.
    slowdown_of : tuple of (str, float)
        The same by family of kernels, where it is known.
    stretch
        Logarithm of what everything takes besides, give or take half of it.
    counted
        Logarithm of how often cycles and time are counted: exact.
    counts_all
        Instructions and misses are counted as often: runs were added up.
    wait_cycles
        Cycles each access to a memory on a bus waits besides, give or take half of it.
    rebuilds
        Other kernels run.
    unhides
        No waits of flash are left that a prefetch hides.
    drifts, scatters, shifts_clock
        Marks it leaves in the runs and in the clock.
    errors
        How far its effect may be off, besides what memories and clocks may be.
    doubted
        Logarithm of how likely a header says what it says where this is so.
    clock_log
        Of a clock that is not the one observed: its logarithm over the one asked for.
    places
        Of how many of its kind it is one, where those that show nothing are not listed.
    again : tuple of (str, float)
        What is otherwise in a second measurement than it states, by dotted path.
    longer : tuple of (str, float)
        Memories whose wait states, as many as the clock asks for, are so many times as long.
    sizes
        Of two at once: how many sizes it stands for, those that are about as likely.
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
    doubted: float = 0.0
    clock_log: float | None = None
    places: int = 0
    again: tuple[tuple[str, float], ...] = ()
    longer: tuple[tuple[str, float], ...] = ()
    sizes: float = 1.0


ADDED = ("slowdown", "stretch", "counted", "wait_cycles", "doubted")
"""What two faults at once have the sum of; of the rest they have what either has."""

PRIOR, OWN_UNKNOWN = {DECLARED: 0.38, UNKNOWN: 0.10}, 0.06
"""Before any evidence; what is left is shared by the other kinds, and equally within a kind. Of our
own firmware, which says who it is, less is of nothing listed: 0.035 to 0.1 tried on hidden boards
of seeds 950, 951 and 961 to 963."""

RARE: Mapping[str, float] = _ERRORS["rare"]
"""Share of an equal part a kind has, where it is not one."""

OWN_OPERATOR = 0.2
"""The same of one operator of our own firmware, whose kernels are built together; each of a
library's is chosen by itself, so there it has an equal part: chosen on seeds 1020 and 1021 of
`benchmarks.diagnosis.logs` (kws), where it is planted in four of thirteen logs."""

COUNTED: Mapping[str, float] = _ERRORS["counted"]
"""Share a wrong counter has, by what was measured."""

ADDED_UP = 0.1
"""Share of wrong counters that are wrong alike, as where runs are added up: assumed. A prescaler or
another unit is of one counter; other kernels change instructions as they change cycles, too."""

PAIRS_PRIOR = 0.15
"""Of two faults at once, all pairs of kinds together.

Learnt, with `PRIOR` and the tempers, as what makes planted kinds most probable
(`benchmarks.diagnosis`, seeds 11 to 16): at 0.06, a second fault that costs a tenth of the first
was ruled out before it was looked at, and the first was stated alone at 0.9 where it was one of
two in a third of the cases."""


def prior_of(faults: tuple[Fault, ...],
             stated: Mapping[str, float] = MappingProxyType({}), *,
             measured: str = "cycles", own: bool = False) -> tuple[float, ...]:
    """Return the prior probability of each; pairs share what is theirs.

    Of kinds a user states a probability of, variants share that; the others have what is left. The
    sum is 1 but for what is not listed: pairs, and layers and operators that are not off alone.

    Parameters
    ----------
    measured
        Of `COUNTED`, as cycles where it is none.
    own
        Our firmware was measured.
    """
    known = PRIOR | {UNKNOWN: OWN_UNKNOWN if own else PRIOR[UNKNOWN]}
    rare = {COUNTER: COUNTED.get(measured, COUNTED["cycles"]), **RARE,
            ONE_OPERATOR: OWN_OPERATOR if own else 1.0}
    pairs = [fault for fault in faults if JOINED in fault.kind]
    others = sorted({fault.kind for fault in faults if JOINED not in fault.kind} - set(known))
    left = 1.0 - sum(known.values()) - (PAIRS_PRIOR if pairs else 0.0)
    share = left / max(math.fsum(rare.get(kind, 1.0) for kind in others), 1e-9)
    sizes = {fault.kind: sum(other.kind == fault.kind for other in faults) for fault in faults}
    every = [fault.counts_all for fault in faults if fault.kind == COUNTER]
    possible = max(len(others) * (len(others) - 1) / 2, 1.0)
    weights = []
    for fault in faults:
        if JOINED in fault.kind:  # one of each kind's variants was chosen: the others count as well
            weights.append(fault.sizes * PAIRS_PRIOR / possible / math.prod(
                sizes.get(kind, 1) for kind in fault.kind.split(JOINED)))
        else:
            part = 1 / (fault.places or sizes[fault.kind])
            if fault.kind == COUNTER and len(set(every)) > 1:
                part = (ADDED_UP if fault.counts_all else 1 - ADDED_UP) / every.count(
                    fault.counts_all)
            weights.append(known.get(fault.kind, share * rare.get(fault.kind, 1.0)) * part)
    given = {kind: known.get(kind, share * rare.get(kind, 1.0)) for kind in stated}
    rest = max(1 - math.fsum(stated.values()), 0.0) / max(1 - math.fsum(given.values()), 1e-9)
    return tuple(weight * (stated[fault.kind] / given[fault.kind] if fault.kind in stated else rest)
                 for weight, fault in zip(weights, faults, strict=True))


def join_faults(first: Fault, second: Fault) -> Fault:
    """Return both at once; what they do together is not predicted but joined."""
    either = {one.name: getattr(first, one.name) or getattr(second, one.name)
              for one in fields(Fault)}
    both = {name: getattr(first, name) + getattr(second, name) for name in ADDED}
    return Fault(**either | both | {
        "kind": first.kind + JOINED + second.kind, "name": first.name + JOINED + second.name,
        "deployment": second.deployment if second.shifts_clock else either["deployment"],
        "remedy": f"{first.remedy}; then {second.remedy}", "counts_all": False,
        "slowdown_sd": math.hypot(first.slowdown_sd, second.slowdown_sd)})
