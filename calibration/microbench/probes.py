"""Micro-benchmarks: what each repeats, and what a measurement of them says about a machine.

A probe runs twice, with few laps and with many; the difference, per unit of work, is free of calls,
counter reads and cold starts. The firmware holds probes as the layers of a network, two per probe,
so a measurement of them is a measurement like any other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, fields

import numpy as np

from calibration.errors import MeasurementError
from calibration.measurement.measurement import Measurement
from hwmodels.errors import check_word, reworded
from hwmodels.files import DocumentError, parse_json
from hwmodels.frozen import frozen

RUNTIME = "microbench"
"""Runtime a measurement of micro-benchmarks names in its header."""

PROBES_KEY = "probes"
"""Entry of the header's environment that says what each layer was."""

GROUPS = ("chase", "shuffled", "conflict", "read", "write", "fetch", "mac", "dot", "branch", "call",
          "loop")
"""What a probe repeats; see `firmware/microbench`."""

BRANCHES = 8
"""Of one lap, as in the firmware's control.c."""

MAC_REPEATS = 32
"""Of the sequence in one lap."""

FIRST_LAYER = 1
"""Layer of the first probe; the one before fills the memories with zeros."""

COUNTERS = ("cpu_cycles", "instructions", "timer_ticks")
"""What probes are counted in: the first a measurement has."""

TAIL_BYTES = 32
"""Of the arena behind its room: the network's input and output, which nothing reads."""


@frozen
class Rooms:
    """Where probes find memory.

    Parameters
    ----------
    weights, arena, code
        Names of the memories that hold constants, working memory and code.
    sizes
        Bytes of the room in each memory that is accessed; what is neither weights nor arena gets
        a section of its own.
    """

    weights: str
    arena: str
    code: str
    sizes: dict[str, int]

    @property
    def others(self) -> tuple[str, ...]:
        """Memories with a section of their own."""
        return tuple(name for name in self.sizes if name not in (self.weights, self.arena))


@frozen
class Probe:
    """One thing repeated.

    Parameters
    ----------
    group
        One of `GROUPS`.
    memory
        What is accessed, a memory of the board; "" for arithmetic and control.
    extent_bytes
        Bytes one lap goes over.
    stride_bytes
        Between accesses.
    dtype
        Of multiply-accumulates: "int8", "int16" or "float32".
    code
        Of multiply-accumulates: the sequence that is repeated `MAC_REPEATS` times.
    macs
        Multiply-accumulates of one lap.
    few, many
        Laps of its two runs.
    """

    group: str
    memory: str = ""
    extent_bytes: int = 0
    stride_bytes: int = 0
    dtype: str = ""
    code: str = ""
    macs: int = 0
    few: int = 2
    many: int = 8

    def __post_init__(self) -> None:
        """Refuse a group that is not known and laps that do not grow."""
        check_word("probe group", self.group, GROUPS, MeasurementError)
        if not 0 < self.few < self.many:
            raise MeasurementError(f"{self.name}: {self.few} and {self.many} laps; accepted: few "
                                   "above 0, many above few")

    @property
    def name(self) -> str:
        """What it is called: group, memory or type, extent and stride."""
        where = " ".join(part for part in (self.group, self.memory, self.dtype) if part)
        size = f" {self.extent_bytes}" if self.extent_bytes else ""
        return where + size + (f"/{self.stride_bytes}" if self.stride_bytes else "")

    @property
    def units(self) -> int:
        """Units of one lap: accesses, bytes, multiply-accumulates, branches or calls."""
        if self.group in ("chase", "shuffled", "conflict"):
            return self.extent_bytes // self.stride_bytes
        if self.group in ("read", "write", "fetch"):
            return self.extent_bytes
        return self.macs or {"branch": BRANCHES}.get(self.group, 1)


@frozen
class Reading:
    """What a probe took.

    Parameters
    ----------
    cost
        Counts of the main counter per unit, of the least disturbed runs.
    sd
        Standard deviation, from the spread of runs.
    """

    probe: Probe
    cost: float
    sd: float


def pack_probes(probes: Iterable[Probe]) -> str:
    """Return probes as text, for a header and for the hash of an image."""
    default = Probe(group="loop")
    return json.dumps([{name: value for name, value in asdict(probe).items()
                        if name == "group" or value != getattr(default, name)}
                       for probe in probes], separators=(",", ":"))


def unpack_probes(text: str, where: str) -> tuple[Probe, ...]:
    """Return the probes of `pack_probes`.

    Raises
    ------
    MeasurementError
        Naming `where` when the text is something else.
    """
    known = {field.name for field in fields(Probe)}
    with reworded((DocumentError, ValueError, TypeError), MeasurementError,
                  f"{where}: {PROBES_KEY} cannot be read (", ")"):
        entries = parse_json(text)
        if not isinstance(entries, list) or not all(
                isinstance(entry, dict) and set(entry) <= known for entry in entries):
            raise ValueError("not a list of probes")
        return tuple(Probe(**entry) for entry in entries)


def is_microbench(measurement: Measurement) -> bool:
    """Whether a measurement is of micro-benchmarks."""
    return measurement.header.runtime == RUNTIME


def read_probes(measurement: Measurement, where: str = "measurement") -> tuple[Reading, ...]:
    """Return what each probe of a measurement took.

    Parameters
    ----------
    measurement
        Of micro-benchmarks; two layers each, from `FIRST_LAYER` on, with few and many laps.

    Raises
    ------
    MeasurementError
        When it is of something else, or lacks layers.

    Notes
    -----
    cost = (least of many - least of few) / (units of the laps between them): what disturbs a run
    only ever adds. The deviation is that of means, so larger than the least's.
    """
    text = measurement.header.facts.get(PROBES_KEY)
    if not is_microbench(measurement) or text is None:
        raise MeasurementError(f"{where}: holds no micro-benchmarks; accepted: what "
                               "`twin measure --plan` wrote")
    counter = main_counter(measurement, where)
    found = []
    for number, probe in enumerate(unpack_probes(text, where)):
        layers = probe_layers(number)
        if not all(measurement.count(counter, layer) for layer in layers):
            raise MeasurementError(f"{where}: probe {probe.name} was not run to its end")
        few, many = (measurement.values(counter, layer) for layer in layers)
        units = probe.units * (probe.many - probe.few)
        spread = math.hypot(*(float(np.std(values)) / math.sqrt(len(values))
                              for values in (few, many)))
        found.append(Reading(probe=probe, sd=spread / units,
                             cost=float(many.min() - few.min()) / units))
    return tuple(found)


def probe_layers(number: int) -> tuple[int, int]:
    """Layers of a probe by its number: with few laps, with many."""
    return FIRST_LAYER + 2 * number, FIRST_LAYER + 2 * number + 1


def main_counter(measurement: Measurement, where: str = "measurement") -> str:
    """Return the counter probes are read from."""
    for name in COUNTERS:
        if name in measurement.counters:
            return name
    raise MeasurementError(f"{where}: counts neither of {', '.join(COUNTERS)}")


@frozen
class PowerStep:
    """What a machine draws while it repeats one thing, in mW at the rail."""

    probe: Probe
    power_mw: float
    sd_mw: float


def read_power(measurement: Measurement, energies: Measurement,
               where: str = "measurement") -> tuple[PowerStep, ...]:
    """Return the power of each probe: its energy between few and many laps, over their time.

    Parameters
    ----------
    measurement
        Of micro-benchmarks: how long each probe takes.
    energies
        Energies of the same layers in uj, as `twin energy` writes them.

    Raises
    ------
    MeasurementError
        Without a clock, or without energies of the probes.

    Notes
    -----
    power = (energy of many - energy of few) / (time of many - time of few), so edges of the marks
    and what stands around the laps cancel. The deviation is that of the energies.
    """
    readings, counter = read_probes(measurement, where), main_counter(measurement, where)
    clock = {"cpu_cycles": "cpu", "timer_ticks": "timer"}.get(counter, "")
    hertz = measurement.header.clocks.get(clock)
    if hertz is None:
        raise MeasurementError(f"{where}: {counter} are of no known clock, so not a time")
    steps = []
    for number, reading in enumerate(readings):
        pair = probe_layers(number)
        if not all(energies.count("energy", layer) for layer in pair):
            raise MeasurementError(f"{where}: no energy of probe {reading.probe.name}")
        few, many = (float(np.mean(energies.values("energy", layer))) for layer in pair)
        sds = [float(np.mean(energies.values("energy_sd", layer)))
               / math.sqrt(energies.count("energy", layer)) for layer in pair]
        laps = reading.probe.many - reading.probe.few
        time_us = reading.cost * reading.probe.units * laps / hertz * 1e6
        steps.append(PowerStep(probe=reading.probe, power_mw=(many - few) / time_us * 1e3,
                               sd_mw=math.hypot(*sds) / time_us * 1e3))
    return tuple(steps)
