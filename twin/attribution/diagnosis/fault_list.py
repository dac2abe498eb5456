"""Every fault possible for a set-up, a changed deployment or a mark of runs, and its remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hwmodels.board.facts import Memory
from hwmodels.errors import TwinError
from hwmodels.file_cache import read_yaml_once
from hwmodels.isa import load_isa
from twin.attribution.diagnosis.faults import (
    COMPILED,
    COUNTER,
    DECLARED,
    KEPT_IN_MEMORY,
    NOTHING_KNOWN,
    REBUILT,
    RELINKED,
    SLOWED,
    UNKNOWN,
    ErrorModel,
    Fault,
)
from twin.attribution.diagnosis.marks import CLOCK_SD, SAME_TICKS
from twin.attribution.diagnosis.remedies import (
    build_for,
    enable_caches,
    flash_register,
    link_kernels,
    look_at_waits,
    state_ticks,
    stop_others,
)
from twin.deployment.choice import list_releases, load_runtime
from twin.deployment.deployment import Deployment
from twin.deployment.stated import is_known

CLOCK_SLACK = 0.03
"""An internal oscillator may run above a part's highest clock by as much, as a share."""

(COMMON_CLOCKS_HZ, MORE_WAIT_STATES, UNHIDDEN, STRETCHES, WAITS, COUNTED, COUNTS) = read_yaml_once(
    Path(__file__).with_name("sizes.yaml")).values()
"""Sizes that are tried, in the order of the file."""

UNOPTIMISED = math.log(11.0)
UNOPTIMISED_SD = 0.2
"""Logarithm of what -O0 costs the core over -O2, and its spread: assumed; kernels of this firmware
take 8 to 14 times the cycles by layer (gcc 12.2, kws on an emulated Cortex-M4)."""

OUR_UNOPTIMISED = tuple(read_yaml_once(Path(__file__).with_name("unoptimised.yaml")).items())
"""Instructions of -O0 over -O2 by how a kernel is labelled."""

OUR_UNOPTIMISED_SD = 0.1
"""Of our own firmware, whose kernels were counted: `OUR_UNOPTIMISED`."""

OTHER_KERNELS, OTHER_KERNELS_SD = math.log(2.5), 0.5
"""The same of kernels that are not the optimised ones, whoever wrote them: assumed."""


def list_faults(deployment: Deployment, clock_hz: float | None = None, *, timed: bool = True,
                clock_sd: float = CLOCK_SD, stated: str = "",
                ticks_hz: float | None = None) -> tuple[Fault, ...]:
    """Return every single hypothesis that is possible for a deployment.

    Parameters
    ----------
    clock_hz
        The core's clock as observed; without it common frequencies are tried.
    timed
        Whether time identifies the clock; else only clocks of other wait states are listed.
    clock_sd
        Error of the clock observed, as a logarithm: common ones within it are listed besides.
    stated
        Runtime as a log says it: of a release with open kernels what another build of it executes
        is counted; else its effect is as unsure as that of other kernels.
    ticks_hz
        Clock of the ticks of a log that does not state the core's: it may be that.

    Returns
    -------
    tuple of Fault
        As declared first, none of these last.
    """
    counted = COMPILED if deployment.runtime.structure == "open" and is_stated(stated) else REBUILT
    return (
        Fault(kind=DECLARED, name=DECLARED, remedy=""),
        *_misplaced(deployment), *_uncached(deployment), *_slow_flash(deployment),
        *_other_clocks(deployment, clock_hz, timed, clock_sd, ticks_hz),
        *_weaker(deployment, counted),
        *_other_levels(deployment), *_reference(deployment, counted), *_other_npus(deployment),
        _unoptimised(deployment),
        Fault(kind="throttling", name="the clock slows down during the runs", drifts=True,
              remedy="look at temperature, supply and clock source; pause between blocks"),
        *(Fault(kind="interrupts", name=f"interrupts take about {100 * share:.0f} %" if share else
                "rare interrupts",
                scatters=True, stretch=math.log1p(share), remedy=stop_others(deployment))
          for share in STRETCHES),
        *(Fault(kind="load", name=f"another master on the bus, {wait:g} cycles an access",
                wait_cycles=wait, remedy="stop the other core, DMA or debugger, or move what it "
                                         "uses to another memory") for wait in WAITS),
        *(Fault(kind=COUNTER, name=f"{what} counted {times}", counted=math.log(factor),
                counts_all=counts_all, remedy=f"{remedy}: all layers are off by one factor")
          for what, counts_all, remedy in COUNTS for times, factor in COUNTED),
        *(Fault(kind=UNKNOWN, name=UNKNOWN, errors=size,
                remedy="compare cause by cause: twin attribute") for size in NOTHING_KNOWN))


def try_changes(deployment: Deployment, changes: Mapping[str, object]) -> Deployment | None:
    """Return a changed deployment; None where it cannot be."""
    try:
        return deployment.replace(changes)
    except TwinError:
        return None


def change(deployment: Deployment, changes: Mapping[str, object],
            versus: Deployment | None = None, **facts: Any) -> Iterator[Fault]:
    """Yield the fault of these facts, where it is possible; of another base, its change alone."""
    changed = try_changes(versus or deployment, changes)
    if changed is not None:
        yield Fault(deployment=changed, versus=versus, **facts)


def _misplaced(deployment: Deployment) -> Iterator[Fault]:
    read = deployment.runtime.built is not None  # another image cannot be built
    for role, present in (("weights", deployment.weights), ("arena", deployment.arena)):
        for memory in deployment.board.memories:
            if memory.name != present:
                yield from change(
                    deployment, {f"placement.{role}": memory.name}, kind="placement",
                    versus=lower_compiled(deployment) if read else None,
                    name=f"{role} in {memory.name}", unhides=role == "weights",
                    errors=COMPILED if read else RELINKED,
                    remedy=f"look up the section of the {role} in the link map; {present} was "
                           "asked for")


def _uncached(deployment: Deployment) -> Iterator[Fault]:
    board = deployment.board
    caches = [board.cache(name) for name in dict.fromkeys((board.core.dcache, board.core.icache))]
    names = [cache.name for cache in caches if cache is not None and cache.enabled]
    chosen = [(name,) for name in names] + ([tuple(names)] if len(names) > 1 else [])
    for those in chosen:
        yield from change(
            deployment, {f"caches.{name}.enabled": False for name in those}, kind="cache off",
            name="all caches off" if len(those) > 1 else f"{those[0]} off",
            remedy=enable_caches(board, [cache for cache in caches
                                         if cache is not None and cache.name in those]))


def _other_npus(deployment: Deployment) -> Iterator[Fault]:
    """Yield an accelerator laid out for another memory, of another size, or at another clock."""
    if not deployment.accelerated or not (npu := deployment.board.accelerator).config:
        return
    for mode in deployment.runtime.compiler.memory_modes:
        if mode != npu.memory_mode:
            yield from change(
                deployment, {"npu.memory_mode": mode}, kind="memory mode", rebuilds=True,
                errors=REBUILT, name=f"laid out for {mode}",
                remedy=f"give the NPU's compiler --memory-mode {npu.memory_mode}")
    product, _, size = npu.config.rpartition("-")
    for factor in (0.5, 0.25, 2):
        other = f"{product}-{int(size) * factor:g}"
        yield from change(
            deployment, {"npu.config": other}, kind="NPU size", rebuilds=True, errors=REBUILT,
            name=f"an {other}", remedy=f"compile for {npu.config}, or look which the chip has")
    outer = npu.pools[-1]
    for share in (2, 4):
        yield from change(
            deployment, {f"npu.pools.{outer.name}.bytes_per_cycle": outer.bytes_per_cycle / share},
            kind="slow NPU memory", errors=REBUILT, name=f"{outer.name} at 1/{share} of its rate",
            remedy=f"look at mode, clock and cache of {outer.memory}, or bring what the NPU reads "
                   "of it to SRAM")


def _slow_flash(deployment: Deployment) -> Iterator[Fault]:
    """Yield flash slower than the board file says: wait states, prefetch, width.

    More wait states are predicted behind a prefetch, and as if it hid nothing of them. A prefetch
    may have hidden a share of data's waits, where code and data come through one cache, and of a
    narrower read nothing may be hidden: waits are then so many times as long.
    """
    core = deployment.board.core
    for memory in deployment.board.memories:
        if memory.role != "flash":
            continue
        bases: list[tuple[Deployment | None, str]] = [(None, "")]
        if memory.prefetch:
            off = {f"memories.{memory.name}.prefetch": False}
            bases.append((try_changes(deployment, off), ", not hidden by its prefetch"))
            for times in (1.0, *UNHIDDEN) if core.dcache == core.icache else (1.0,):
                yield from change(
                    deployment, off | _lengthen(memory, times), kind="prefetch", unhides=times == 1,
                    longer=((memory.name, times),) * (times > 1),
                    name=f"prefetch of {memory.name} off" + (times > 1) * (
                        f", which hid {100 * (1 - 1 / times):.0f} % of its waits"),
                    remedy=f"enable prefetch in {flash_register(deployment.board)}")
        for versus, text in bases:
            for more in MORE_WAIT_STATES:
                states = memory.wait_states + more
                yield from change(
                    deployment, {f"memories.{memory.name}.wait_states": states}, versus,
                    kind="wait states", name=f"{memory.name} at {states} wait states{text}",
                    remedy=look_at_waits(deployment.board, memory))
        half = memory.read_bytes // 2
        for width, times in ((half, 1.0), (half, 2.0), (memory.read_bytes * 2, 1.0)):
            if 4 <= width <= 32:
                yield from change(
                    deployment, _lengthen(memory, times) or {
                        f"memories.{memory.name}.read_bytes": width},
                    kind="flash width", longer=((memory.name, times),) * (times > 1),
                    remedy="look at the option bytes: one bank or two",
                    name=f"{memory.name} read {width} bytes at a time"
                         + ", nothing hidden" * (times > 1))


def _lengthen(memory: Memory, times: float) -> dict[str, object]:
    """Return the change that makes waits so many times as long; none of one."""
    return {} if times == 1 else {
        f"memories.{memory.name}.wait_states": round(memory.wait_states * times)}


def list_fills(deployment: Deployment) -> Iterator[Fault]:
    """Yield by how much it is unsure what is hidden of a flash's waits, as other predictions.

    Lines that the core waits for whole, where fills hide part of them; and waits twice as long
    where a prefetch, which is predicted to hide none of data that come through the cache of code,
    may hide all of them.
    """
    board = deployment.board
    cache = board.cache(board.core.dcache)
    for memory in board.memories:
        if memory.role == "flash" and cache and cache.enabled and cache.critical_word_first:
            yield from change(
                deployment, {f"caches.{cache.name}.critical_word_first": False} | (
                    {} if memory.line_latency_cycles is None else
                    {f"memories.{memory.name}.latency.line_cycles": memory.latency_cycles + 1}),
                kind="fills", name=f"fills from {memory.name} hide nothing", remedy="")
        if (memory.role == "flash" and memory.prefetch and cache and cache.enabled
                and board.core.dcache == board.core.icache):
            yield from change(deployment, _lengthen(memory, 2.0), kind="fills",
                              longer=((memory.name, 2.0),), remedy="",
                              name=f"lines of {memory.name} are read ahead")


def _other_clocks(deployment: Deployment, observed_hz: float | None,
                  timed: bool, clock_sd: float, ticks_hz: float | None) -> Iterator[Fault]:
    """Yield clocks the part allows; of those only cycles could tell, one for each wait state.

    Set-up code gives a flash the wait states of the clock it sets, so a lower clock waits for less.
    """
    clock, known = deployment.board.core.clock, {_list_waits(deployment)}
    asked = deployment.board.clock(clock).frequency_hz
    most = deployment.board.highest_hz.get(clock, math.inf) * (1 + CLOCK_SLACK)
    common = deployment.board.clock(clock).settings_hz or (
        *COMMON_CLOCKS_HZ, *(asked / part for part in (2, 3, 4)))
    tried = common if observed_hz is None else (observed_hz,)
    if ticks_hz is not None and not deployment.board.clock(clock).settings_hz:
        tried = (ticks_hz, *(one for one in tried if abs(one / ticks_hz - 1) >= SAME_TICKS))
    if observed_hz is not None and clock_sd > CLOCK_SD:
        tried += tuple(hertz for hertz in common
                       if abs(math.log(hertz / observed_hz)) < 3 * clock_sd)
    for hertz in sorted({float(one) for one in tried}):
        if abs(hertz / asked - 1) < 0.01 or hertz > most:
            continue
        changes: dict[str, object] = {
            f"clocks.{clock}.frequency_hz": hertz,
            "supply.voltage_scale": deployment.board.power.voltage_scale}
        changed, text = try_changes(deployment, changes), ""
        if not timed:
            waits = () if changed is None else _list_waits(changed)
            if changed is None or waits in known:
                continue
            known.add(waits)
            text = f" or near, flash at {' and '.join(map(str, waits))} wait states"
        yield Fault(kind="clock", name=f"{clock} at {hertz / 1e6:g} MHz{text}",
                    deployment=changed, shifts_clock=True,
                    clock_log=None if observed_hz in (None, hertz) else math.log(hertz / asked),
                    remedy=f"{state_ticks(hertz)}; else " * (hertz == ticks_hz)
                           + f"check PLL and oscillator: {asked / 1e6:g} MHz was asked for"
                           + "; time a run by a host's clock" * (not timed))


def _list_waits(deployment: Deployment) -> tuple[int, ...]:
    """Return the wait states of each flash."""
    return tuple(memory.wait_states for memory in deployment.board.memories
                 if memory.role == "flash")


def _weaker(deployment: Deployment, counted: ErrorModel) -> Iterator[Fault]:
    lowered = lower_compiled(deployment)
    if deployment.runtime.library == "reference" or lowered is None:
        return
    own = deployment.runtime.is_compiled and deployment.runtime.built is None
    # what a compiler falls back to when the flag of the core's own is missing
    for isa in load_isa(deployment.board.core.isa).without.values():
        # an image of portable kernels is built where there is a weaker set to build for
        yield from change(
            deployment, {"cores.main.isa": isa}, kind="SIMD", name=f"kernels built for {isa}",
            versus=None if own or lowered is deployment else lowered, rebuilds=True,
            errors=COMPILED if own else counted, remedy=build_for(deployment))
        if own:
            return


def _other_levels(deployment: Deployment) -> Iterator[Fault]:
    """Other levels of optimisation of the same compiler, each read from its own image."""
    runtime = deployment.runtime
    if not runtime.is_compiled or runtime.built is not None:  # its header names the level
        return
    compiler, _, present = runtime.version.rpartition("-")
    for identity in list_releases(runtime.name):
        other, _, level = identity.partition("@")[2].rpartition("-")
        if other != compiler or level == present:
            continue
        yield from change(
            deployment, {"runtime": load_runtime(identity).identity}, kind="optimisation",
            name=f"built with -{level}", rebuilds=True, errors=COMPILED,
            remedy=f"build with -{present}, or say what it was built with: --runtime {identity}")


def _unoptimised(deployment: Deployment) -> Fault:
    """Return -O0, whose images cannot be read: by what it costs our kernels, or any."""
    ours = deployment.runtime.is_compiled
    return Fault(kind="-O0", name="built without optimisation", rebuilds=True,
                 errors=KEPT_IN_MEMORY if ours else SLOWED, slowdown=UNOPTIMISED,
                 slowdown_of=OUR_UNOPTIMISED if ours else (),
                 slowdown_sd=OUR_UNOPTIMISED_SD if ours else UNOPTIMISED_SD,
                 remedy="build with -O2 or -O3")


def _reference(deployment: Deployment, counted: ErrorModel) -> Iterator[Fault]:
    """Yield the reference kernels of TFLite Micro, of its own release, and other slow ones."""
    lowered = lower_compiled(deployment)
    if deployment.runtime.library == "reference" or lowered is None:
        return
    remedy = link_kernels(deployment)
    library = "tflm-reference"
    own = f"{library}@{deployment.runtime.version}"
    known = own in list_releases(library)
    changed = try_changes(lowered, {"runtime": own if known else library})
    if changed is not None:
        yield Fault(kind="reference kernels", name="reference kernels", deployment=changed,
                    rebuilds=True, versus=None if lowered is deployment else lowered,
                    errors=counted if known else REBUILT, remedy=remedy)
    yield Fault(kind="reference kernels", name="other kernels, not optimised", rebuilds=True,
                errors=REBUILT, slowdown=OTHER_KERNELS, slowdown_sd=OTHER_KERNELS_SD, remedy=remedy)


def is_stated(stated: str) -> bool:
    """Whether a log says its library and the release of it, and we know that."""
    return "@" in stated and is_known(stated)


def lower_compiled(deployment: Deployment) -> Deployment | None:
    """Return the deployment under a library whose kernels are lowered, not read from an image."""
    if not deployment.runtime.is_compiled:
        return deployment
    return try_changes(deployment, {"runtime": "cmsis-nn"})
