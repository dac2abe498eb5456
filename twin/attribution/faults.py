"""Faults of a set-up a diagnosis weighs: each a changed deployment, or a mark left in the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hwmodels.errors import TwinError
from twin.deployment.deployment import Deployment

DECLARED = "as declared"
UNKNOWN = "none of these"

WEAKER_ISA = {
    "armv7e-m": ("armv7-m",), "armv8-m-dsp": ("armv8-m",),
    "armv8.1-m-mve": ("armv8-m-dsp", "armv8-m"),
}
"""Instruction sets a compiler falls back to when the flag of the core's own is missing."""

COMMON_CLOCKS_HZ = (4e6, 8e6, 16e6, 24e6, 32e6, 48e6, 64e6, 80e6, 96e6)
"""Frequencies of internal oscillators and first PLL settings: where a forgotten set-up stays."""

UNOPTIMISED = math.log(9.0)
UNOPTIMISED_SD = 0.45
"""Logarithm of what -O0 costs the core over -O2, and its spread: assumed; kernels of this firmware
take 8 to 14 times the cycles by layer (gcc 12.2, kws on an emulated Cortex-M4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A hypothesis.

    Parameters
    ----------
    kind : str
        "placement", "cache off", "clock", "SIMD", "reference kernels", "-O0", "throttling",
        "interrupts", `DECLARED` or `UNKNOWN`.
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
    rebuilds : bool
        Other kernels run: their cost is predicted less well than what memories and clocks do.
    drifts, scatters, shifts_clock : bool
        Marks it leaves in the runs and in the clock.
    """

    kind: str
    name: str
    remedy: str
    deployment: Deployment | None = None
    versus: Deployment | None = None
    slowdown: float = 0.0
    slowdown_sd: float = 0.0
    rebuilds: bool = False
    drifts: bool = False
    scatters: bool = False
    shifts_clock: bool = False


PRIOR = {DECLARED: 0.5, UNKNOWN: 0.05}
"""Before any evidence; what is left is shared equally by the other kinds, and within a kind."""


def list_faults(deployment: Deployment, clock_hz: float | None = None) -> tuple[Fault, ...]:
    """Return every hypothesis that is possible for a deployment.

    Parameters
    ----------
    deployment : Deployment
        As asked for.
    clock_hz : float, optional
        The core's clock as observed; without it common frequencies are tried.

    Returns
    -------
    tuple of Fault
        As declared first, none of these last; one fault at a time, combinations are not weighed.
    """
    return (
        Fault(kind=DECLARED, name=DECLARED, remedy=""),
        *_misplaced(deployment), *_uncached(deployment), *_other_clocks(deployment, clock_hz),
        *_weaker(deployment), *_reference(deployment),
        Fault(kind="-O0", name="built without optimisation", rebuilds=True,
              slowdown=UNOPTIMISED, slowdown_sd=UNOPTIMISED_SD, remedy="build with -O2 or -O3"),
        Fault(kind="throttling", name="the clock slows down during the runs", drifts=True,
              remedy="look at temperature, supply and clock source; pause between blocks"),
        Fault(kind="interrupts", name="interrupts take part of the time", scatters=True,
              remedy="mask them (twin measure --mask), or stop what causes them"),
        Fault(kind=UNKNOWN, name=UNKNOWN,
              remedy="compare cause by cause: twin attribute"))


def _try(deployment: Deployment, changes: dict[str, object]) -> Deployment | None:
    try:
        return deployment.replace(changes)
    except TwinError:
        return None


def _misplaced(deployment: Deployment) -> Iterator[Fault]:
    for role, present in (("weights", deployment.weights), ("arena", deployment.arena)):
        for memory in deployment.board.memories:
            changed = None if memory.name == present else _try(
                deployment, {f"placement.{role}": memory.name})
            if changed is not None:
                yield Fault(kind="placement", name=f"{role} in {memory.name}", deployment=changed,
                            remedy=f"look up the section of the {role} in the link map; "
                                   f"{present} was asked for")


def _uncached(deployment: Deployment) -> Iterator[Fault]:
    board = deployment.board
    caches = [board.cache(name) for name in dict.fromkeys((board.core.dcache, board.core.icache))]
    names = [cache.name for cache in caches if cache is not None and cache.enabled]
    for chosen in ([name] for name in names):
        changed = _try(deployment, {f"caches.{name}.enabled": False for name in chosen})
        if changed is not None:
            yield Fault(kind="cache off", name=f"{', '.join(chosen)} off", deployment=changed,
                        remedy="enable it in the start-up code (SCB_EnableICache, "
                               "SCB_EnableDCache, the flash's ACR, ICACHE_CR)")
    if len(names) > 1:
        changed = _try(deployment, {f"caches.{name}.enabled": False for name in names})
        if changed is not None:
            yield Fault(kind="cache off", name="all caches off", deployment=changed,
                        remedy="enable them in the start-up code")


def _other_clocks(deployment: Deployment, observed_hz: float | None) -> Iterator[Fault]:
    clock = deployment.board.core.clock
    asked = deployment.board.clock(clock).frequency_hz
    tried = (observed_hz,) if observed_hz is not None else (
        *COMMON_CLOCKS_HZ, *(asked / part for part in (2, 3, 4)))
    for hertz in sorted({float(one) for one in tried}):
        if abs(hertz / asked - 1) < 0.01:
            continue
        changed = _try(deployment, {f"clocks.{clock}.frequency_hz": hertz,
                                    "supply.voltage_scale": deployment.board.power.voltage_scale})
        yield Fault(kind="clock", name=f"{clock} at {hertz / 1e6:g} MHz", deployment=changed,
                    shifts_clock=True, remedy=f"check PLL and oscillator: {asked / 1e6:g} MHz was "
                                              "asked for")


def _weaker(deployment: Deployment) -> Iterator[Fault]:
    lowered = _lowered(deployment)
    if deployment.runtime.library == "reference" or lowered is None:
        return
    for isa in WEAKER_ISA.get(deployment.board.core.isa, ()):
        changed = _try(lowered, {"cores.main.isa": isa})
        if changed is not None:
            yield Fault(kind="SIMD", name=f"kernels built for {isa}", deployment=changed,
                        rebuilds=True, versus=None if lowered is deployment else lowered,
                        remedy="give the compiler the core's own flag (-mcpu), and the kernels "
                               "their macro (ARM_MATH_DSP, ARM_MATH_MVEI)")


def _reference(deployment: Deployment) -> Iterator[Fault]:
    lowered = _lowered(deployment)
    if deployment.runtime.library == "reference" or lowered is None:
        return
    changed = _try(lowered, {"runtime": "tflm-reference"})
    if changed is not None:
        yield Fault(kind="reference kernels", name="reference kernels", deployment=changed,
                    rebuilds=True, versus=None if lowered is deployment else lowered,
                    remedy="link the optimised kernels (OPTIMIZED_KERNEL_DIR=cmsis_nn)")


def _lowered(deployment: Deployment) -> Deployment | None:
    """Return the deployment under a library whose kernels are lowered, not read from an image."""
    if not deployment.runtime.is_compiled:
        return deployment
    return _try(deployment, {"runtime": "cmsis-nn"})


def prior_of(faults: tuple[Fault, ...]) -> tuple[float, ...]:
    """Return the prior probability of each, summing to 1."""
    others = sorted({fault.kind for fault in faults} - set(PRIOR))
    share = (1.0 - sum(PRIOR.values())) / max(len(others), 1)
    sizes = {kind: sum(fault.kind == kind for fault in faults) for kind in (*others, *PRIOR)}
    weights = [PRIOR.get(fault.kind, share) / sizes[fault.kind] for fault in faults]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)
