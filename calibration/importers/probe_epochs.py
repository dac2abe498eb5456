"""Epochs of ST's Neural-ART as `twin_probe_npu.h` prints them, named as the npu_profiler does.

Phases are in every inference; what the debug unit counts is there in turns: NPU cycles and engines
in one inference, bursts in the next. Bytes follow from bursts: beats are of eight bytes.

References
----------
firmware/probe/twin_probe_npu.h; flags: EpochBlock_Flags of ll_aton_NN_interface.h.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from calibration.importers.log import Log, measurement_of
from calibration.importers.neural_art_lines import BURST_BEATS
from calibration.importers.neural_art_lines import ENGINES as ENGINES_USED
from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Sample

PHASES = ("pre", "core", "post")
BLOB, SOFTWARE, HYBRID, INTERNAL = 1 << 2, 1 << 5, 1 << 6, 1 << 7
BEAT_BYTES = 8
ENGINES = 10
_BURSTS = tuple((busif, way, beats) for busif in (0, 1) for way in ("write", "read")
                for beats in BURST_BEATS)
_CACHE = ("read_hit", "read_miss", "read_alloc_miss", "read_evict", "write_hit", "write_miss",
          "write_alloc_miss", "write_through")
"""The order of the monitors' registers."""

_SLEPT = 0.8
"""Below which share of the NPU's time the host cannot have counted through."""

Numbers = Mapping[str, int]


def name_epoch(numbers: Numbers) -> str:
    """Return what identifies an epoch of its network: number and kind."""
    number = numbers.get("num", numbers["place"] + 1)
    kind = "SW" if numbers["flags"] & SOFTWARE else "HYBRID" if numbers["flags"] & HYBRID else "HW"
    return f"EpochBlock_{number} {'extra' if numbers['flags'] & INTERNAL else kind}"


def read_epochs(log: Log, model: str, head: Numbers, runs: Sequence[Sequence[Numbers]], *,
                totals: Sequence[int]) -> Measurement:
    """Make a measurement of inferences in epochs.

    Parameters
    ----------
    log
        Gets remarks.
    model
        What the program calls the network.
    head
        Of the first inference: "hz" of the host and "npu", 0 where not known; "mark" in cycles.
    runs
        Of each inference the words of its epoch blocks.
    totals
        Host cycles from begin to end, callbacks among them.

    Returns
    -------
    Measurement
        A "layer" an epoch; those a hybrid epoch inserts are its `extra_` phases.
    """
    first = runs[0]
    _remark(log, head, runs)
    samples = [sample for number, (run, total) in enumerate(zip(runs, totals, strict=True))
               for sample in _samples(number, run, total, head)]
    clocks = [(name, float(head[key])) for name, key in (("cpu", "hz"), ("npu", "npu"))
              if head.get(key)]
    owners = _owners(first)
    numbers = [("mark_cost", f"{head['mark']} cycles, not in the phases")]
    numbers += [(f"epoch {place}", name_epoch(first[place])) for place in dict.fromkeys(owners)]
    return measurement_of(log, samples, expected="epochs of twin_probe_npu.h", model=model,
                          runtime="neural-art", temperature="warm", clocks_hz=clocks,
                          environment=numbers)


def _owners(run: Sequence[Numbers]) -> list[int]:
    """Return of each block the epoch it is of: its own, or the one that inserted it."""
    owners: list[int] = []
    for place, numbers in enumerate(run):
        owners.append(owners[-1] if numbers["flags"] & INTERNAL and owners else place)
    return owners


def _remark(log: Log, head: Numbers, runs: Sequence[Sequence[Numbers]]) -> None:
    """Say what the figures do not show by themselves."""
    for numbers in runs[0]:
        if numbers["flags"] & BLOB:
            log.remarks.append(f"epochs {numbers.get('num', '?')} to {numbers.get('last', '?')} "
                               "ran as one block, by the epoch controller")
    if all(numbers["bursts"] for run in runs for numbers in run):
        log.remarks.append("no inference counted NPU cycles: they take turns with bursts; import "
                           "two inferences or more")
    if not (head["hz"] and head.get("npu")):
        log.remarks.append("clocks are not all stated: define TWIN_PROBE_HZ and TWIN_PROBE_NPU_HZ")
        return
    counted = [numbers for run in runs for numbers in run if "ca" in numbers and
               not numbers["bursts"]]
    host_s = math.fsum(numbers["core"] for numbers in counted) / head["hz"]
    npu_s = math.fsum(numbers["ca"] for numbers in counted) / head["npu"]
    if host_s < _SLEPT * npu_s:
        log.remarks.append(f"the host counted {host_s * 1e6:,.0f} us while the NPU worked for "
                           f"{npu_s * 1e6:,.0f}: it slept (LL_ATON_OSAL_WFE), or a clock is not "
                           "what was printed; core_cycles are then too few")


def _samples(number: int, run: Sequence[Numbers], total: int, head: Numbers) -> Iterator[Sample]:
    counters: dict[int | None, dict[str, float]] = {None: {}}
    for numbers, owner in zip(run, _owners(run), strict=True):
        values = counters.setdefault(owner, {})
        for name, value in (*_phases(numbers), *_counts(numbers)):
            values[name] = values.get(name, 0.0) + value
    whole = counters[None]
    whole["inference_cycles"] = float(total)
    for phases, name in ((PHASES, "cpu_cycles"), (("core",), "core_cycles")):
        whole[name] = math.fsum(values.get(f"{way}{phase}_cycles", 0.0) for values in
                                counters.values() for way in ("", "extra_") for phase in phases)
    if any("core_npu_cycles" in values for values in counters.values()):
        whole["core_npu_cycles"] = math.fsum(values.get("core_npu_cycles", 0.0)
                                             for values in counters.values())
    if head["hz"]:
        whole["duration"] = whole["cpu_cycles"] / head["hz"] * 1e6
        if head.get("npu"):
            whole["npu_cycles"] = whole["cpu_cycles"] / head["hz"] * head["npu"]
            if "core_npu_cycles" in whole:
                whole["npu_core_duration"] = whole["core_npu_cycles"] / head["npu"] * 1e6
    for layer, values in counters.items():
        for name, value in values.items():
            unit, clock = _unit(name)
            yield Sample(run=number, layer=layer, counter=name, clock=clock, unit=unit, value=value)


def _phases(numbers: Numbers) -> Iterator[tuple[str, float]]:
    prefix = "extra_" if numbers["flags"] & INTERNAL else ""
    for phase in PHASES:
        yield f"{prefix}{phase}_cycles", float(numbers[phase])


def _counts(numbers: Numbers) -> Iterator[tuple[str, float]]:
    """Yield what the debug unit and the cache counted, by the profiler's names."""
    counted = [numbers[f"c{letter}"] for letter in "abcdefghijklmnop" if f"c{letter}" in numbers]
    if counted and numbers["bursts"]:
        for (busif, way, beats), value in zip(_BURSTS, counted, strict=False):
            yield f"busif{busif}_{way}_bursts_{beats}", float(value)
            yield f"busif{busif}_{way}_bytes", float(value * beats * BEAT_BYTES)
    elif counted:
        yield "core_npu_cycles", float(counted[0])
        masks = numbers.get("in", 0), numbers.get("out", 0)
        ways = [(index, "in" if masks[0] >> index & 1 else "out") for index in range(ENGINES)
                if (masks[0] | masks[1]) >> index & 1]
        if ways:
            yield ENGINES_USED, float(len(ways))
        for (index, way), value in zip(ways, counted[1:], strict=False):
            yield f"engine_{index}_{way}_active_cycles", float(value)
    for letter, name in zip("abcdefgh", _CACHE, strict=True):
        if f"h{letter}" in numbers:
            yield f"npu_cache_{name}", float(numbers[f"h{letter}"])


def _unit(name: str) -> tuple[str, str | None]:
    if name.endswith("duration"):
        return "us", None
    if name.endswith("_bytes"):
        return "bytes", None
    if not name.endswith("_cycles"):
        return "count", None
    npu = name in ("core_npu_cycles", "npu_cycles") or name.startswith("engine_")
    return "cycles", "npu" if npu else "cpu"
