"""Faults of a build or of a stopwatch that one number can show: beside those of `fault_list`.

What a library's counted levels, other numbers, other caches or the host core of an accelerator
would do is predicted; what nobody models is a range, a grid of sizes with half a step as its
spread: text on a serial line, what else a stopwatch encloses, loads by calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hwmodels.errors import TwinError
from twin.attribution.diagnosis.fault_list import change, list_faults
from twin.attribution.diagnosis.faults import COMPILED, FASTER, REBUILT, Fault
from twin.attribution.diagnosis.log_faults import list_units
from twin.attribution.diagnosis.remedies import link_kernels
from twin.deployment.choice import list_defaults, list_releases, portable_runtime
from twin.deployment.deployment import Deployment
from twin.pricing.prediction import Prediction

COUNTED_LEVELS = (("optimisation", "-Os", "os"), ("assertions", "assertions", "dcheck"))
"""Kind, name, and how such a release of a library ends."""

DEBUG_LEVEL, DEBUG_LEVEL_SD = math.log(1.6), 0.25
"""Logarithm of what -Og or -O1 costs: espressif/esp-tflite-micro#25 has 1.83 on an ESP32, and what
is assembly stays."""

UNCOUNTED_ASSERTIONS = (0.1, 1.5)
"""Share assertions add where nobody counted them: as bounds of a range; assumed."""

BYTE_LOADS = (4.0, 24.0)
"""How many times as long a load takes that is a call of memcpy: four turns of a loop, call and
return, at 8 to 48 cycles instead of 2 (assumed)."""

ENCLOSED = (0.1, 8.0)
"""What loading or pre-processing takes, as a share of the inference: MAX78000_SDK#74 has 3.9 and
6.4; the lower bound is what is worth asking for."""

CHARACTER_US = 10 / 0.1152
"""Ten bits at 115,200 baud."""

CHARACTERS = 30, 90
"""At least a line; at most two lines for each layer, and for eight lines besides."""

STEPS = 5

REFERENCE = "tflm-reference@2026"
"""Kernels of every operator and number."""

ANSI = "esp-nn-ansi@1.2.3"
"""What ESP-NN is without the vectors of the ESP32-S3."""


def list_builds(base: Prediction, setup_us: float, cold_us: float) -> Iterator[Fault]:
    """Yield the faults of a build or a stopwatch that are possible for a deployment.

    Parameters
    ----------
    base
        Of the deployment, warm.
    setup_us, cold_us
        What set-up takes before a first inference, and that inference.
    """
    deployment, time_us = base.deployment, base.time_us
    yield from list_units()
    yield Fault(kind="first inference", name="caches empty", remedy="",
                stretch=math.log(max(cold_us / time_us, 1.0)))
    yield Fault(kind="first inference", name="AllocateTensors and caches empty", remedy="",
                stretch=math.log1p(max(cold_us - time_us, 0.0) / time_us + setup_us / time_us))
    yield from _spread("loading", "{0:.1f} x the inference", *ENCLOSED)
    lines, most = CHARACTERS
    yield from _spread("debug output", "{2:,.0f} characters", lines, most * (len(base.layers) + 8),
                       CHARACTER_US / time_us)
    yield from _shrink_caches(deployment)
    if deployment.accelerated:
        # Of some compilers for NPUs a target is the core itself.
        if {one.kind.lower() for one in deployment.board.accelerator.units} != {
                deployment.board.core.isa}:
            yield from _fall_back(deployment)
        return
    yield from _compile_otherwise(deployment)
    for runtime in dict.fromkeys((deployment.runtime.identity, REFERENCE)):
        yield from change(deployment, {"network.precision": "float32", "runtime": runtime},
                          kind="float", name=f"float32 kernels of {runtime}", errors=REBUILT,
                          remedy="", rebuilds=True)
    if deployment.runtime.library == "esp_nn":
        yield from change(deployment, {"runtime": ANSI}, kind="SIMD", name="kernels in ANSI C",
                          errors=COMPILED, remedy="", rebuilds=True)
    loads = base.bill.cycles(base.clock, "load_store") / base.cycles
    if deployment.runtime.library == "cmsis_nn":  # It alone loads words by memcpy.
        yield from _spread("memcpy", "{1:.1f} x the time", *(loads * (times - 1)
                                                          for times in BYTE_LOADS))


def list_libraries(deployment: Deployment, *, stated: bool = False) -> Iterator[Fault]:
    """Yield other optimised libraries of a board, each a second time as the `FASTER` one it may be.

    Parameters
    ----------
    stated
        A library was asked for: it is no other, but where a time is too short.
    """
    for runtime in {one.name: one for one in list_defaults(deployment.board)}.values():
        if runtime.name != deployment.runtime.name and runtime.library != "reference":
            for kind in (FASTER,) if stated else (FASTER, "library"):
                yield from change(deployment, {"runtime": runtime.identity}, kind=kind,
                                  name=f"{runtime.identity} instead of {deployment.runtime.name}",
                                  errors=COMPILED, rebuilds=True,
                                  remedy=f"if it is meant: --runtime {runtime.identity}")


def _spread(kind: str, name: str, low: float, high: float, unit: float = 1.0) -> Iterator[Fault]:
    """Yield sizes of a share of time added, evenly spaced as logarithms between two bounds.

    A name may hold the share, the factor on the time, and the size in units of a share.
    """
    step = math.log(high / low) / STEPS if low > 0 else 0.0
    for place in range(STEPS if step else 0):
        size = low * math.exp(step * (place + 0.5))
        share = size * unit
        yield Fault(kind=kind, name=name.format(share, 1 + share, size), remedy="",
                    stretch=math.log1p(share),
                    slowdown_sd=step / math.sqrt(12) * share / (1 + share))


def _compile_otherwise(deployment: Deployment) -> Iterator[Fault]:
    """Yield other levels, and assertions, alone and with the reference kernels they cost most."""
    runtime, own = deployment.runtime.name, set()
    for library in dict.fromkeys((runtime, "tflm-reference")):
        for kind, name, ending in COUNTED_LEVELS:
            for changed, versus in _count_level(deployment, library, ending):
                alone = library == runtime
                own |= {kind} if alone else set()
                yield Fault(
                    kind=kind if alone else f"reference kernels and {kind}",
                    remedy="" if alone else link_kernels(deployment),
                    name=name if alone else f"reference kernels and {name}", rebuilds=True,
                    errors=COMPILED if alone else REBUILT, deployment=changed, versus=versus)
    yield Fault(kind="optimisation", name="-Og or -O1", remedy="", rebuilds=True,
                slowdown=DEBUG_LEVEL, slowdown_sd=DEBUG_LEVEL_SD)
    if "assertions" not in own:
        yield from _spread("assertions", "{1:.1f} x the time", *UNCOUNTED_ASSERTIONS)


def _count_level(deployment: Deployment, library: str,
                 ending: str) -> Iterator[tuple[Deployment, Deployment | None]]:
    """Yield the deployment of a counted level, and that of the release it is compared with.

    The level is of the runtime's own release where that was counted, else of the newest.
    """
    present = deployment.runtime.identity
    counted = [one for one in list_releases(library) if one.endswith(f"-{ending}")]
    if not counted:
        return
    level = f"{present}-{ending}" if f"{present}-{ending}" in counted else counted[-1]
    fair = level.removesuffix(f"-{ending}") if library == deployment.runtime.name else present
    try:
        yield deployment.replace({"runtime": level}), (
            None if fair == present else deployment.replace({"runtime": fair}))
    except TwinError:  # it does not fit there, or an operator was not counted
        return


def _shrink_caches(deployment: Deployment) -> Iterator[Fault]:
    """Yield data and instruction caches of a quarter of their size, or the next they can have."""
    core = deployment.board.core
    for name in filter(None, dict.fromkeys((core.dcache, core.icache))):
        cache = deployment.board.cache(name)
        if cache is not None and cache.enabled:
            sizes = cache.settings_bytes or (cache.size_bytes // 4,)
            size = max((one for one in sizes if one < cache.size_bytes), default=0)
            yield from change(
                deployment, {f"caches.{name}.size_bytes": size}, kind="cache off",
                name=f"{name} of {size / 1024:g} KiB",
                remedy=f"look up the size {name} is set to: {cache.size_bytes // 1024} KiB taken")


def _fall_back(deployment: Deployment) -> Iterator[Fault]:
    """Yield layers on the host core of an accelerator: all of them, or of the commonest kinds."""
    host = portable_runtime(deployment.board).identity
    for runtime in (host, REFERENCE):
        yield from change(deployment, {"runtime": runtime}, kind="fallback", errors=REBUILT,
                          name=f"all layers on the CPU, {runtime}", remedy="", rebuilds=True)
    for op in dict.fromkeys(layer.op for layer in deployment.graph.layers):
        yield from change(deployment, {"offload.host": op}, kind="fallback", errors=REBUILT,
                          name=f"{op} on the CPU", remedy="", rebuilds=True)


def list_all(base: Prediction, setup_us: float, cold_us: float, *,
             libraries: bool, clock_hz: float | None = None) -> Sequence[Fault]:
    """Return every fault one number is weighed by, "as declared" first."""
    deployment = base.deployment
    return (*list_faults(deployment, clock_hz), *list_builds(base, setup_us, cold_us),
            *(() if deployment.accelerated else list_libraries(
                deployment, stated=not libraries)))
