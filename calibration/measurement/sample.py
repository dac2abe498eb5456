"""What a measurement consists of: a header, and samples; and what both must look like."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from calibration.errors import MeasurementError
from hwmodels.errors import check_known, did_you_mean, reworded
from hwmodels.files import DocumentError, JsonObject, parse_json
from hwmodels.frozen import NamedNumbers, NamedTexts, frozen, list_fields

SCHEMA = 1
KINDS = ("predicted", "simulated", "measured", "published")
TEMPERATURES = ("cold", "warm")
MAX_VALUE = 1e300
COUNTED, MAX_COUNT = ("cycles", "ticks", "us", "ms", "s"), 1e18
"""Units no value below zero has, and the most of any: 30,000 years in microseconds."""
ALL_ONES = (1 << 32) - 1
_COUNTS = ("cpu_cycles", "timer_ticks", "first_cpu_cycles", "first_timer_ticks")

PAIRS = ("clocks_hz", "placement", "environment")
"""Fields of a header that are objects in its file."""

_HEADER_TYPES: Mapping[str, tuple[type, ...]] = {
    "schema": (int,), "kind": (str,), "model": (str,), "model_sha256": (str, type(None)),
    "architecture_id": (str, type(None)), "board": (str,), "runtime": (str,),
    "clocks_hz": (dict, tuple), "placement": (dict, tuple),
    "temperature": (str, type(None)), "supply_v": (int, float, type(None)), "source": (str,),
    "environment": (dict, tuple),
}
_SAMPLE_TYPES: Mapping[str, tuple[type, ...]] = {
    "run": (int,), "layer": (int, type(None)), "counter": (str,), "clock": (str, type(None)),
    "value": (int, float), "unit": (str,),
}


@frozen
class Header:
    """What was run, where and how; equal headers are the condition for adding runs together.

    Parameters
    ----------
    kind
        One of `KINDS`.
    model_sha256
        Hash of the model file; None is not known.
    architecture_id
        `Graph.architecture_id`; None until matched.
    board, runtime
        By our names, or as published when we have none.
    clocks_hz : tuple of (str, float) pairs
        Frequency of each named clock; sorted by name.
    placement : tuple of (str, str) pairs
        Memory by role ("weights", "arena", "code"); a role omitted is not known.
    temperature
        "cold" (first inference), "warm", or None when the source does not say.
    supply_v
        Voltage at which energy was measured.
    source
        Who measured it and where that is written, or which program predicted it.
    environment : tuple of (str, str) pairs
        Whatever else a repetition needs: tool versions, meter, room temperature.
    """

    kind: str
    model: str
    model_sha256: str | None = None
    architecture_id: str | None = None
    board: str
    runtime: str
    clocks_hz: NamedNumbers = ()
    placement: NamedTexts = ()
    temperature: str | None
    supply_v: float | None = None
    source: str
    environment: NamedTexts = ()
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        """Refuse what the schema does not accept, and put pairs in order."""
        check_header(list_fields(self), "header")
        for name in PAIRS:
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))

    @property
    def facts(self) -> dict[str, str]:
        """What the environment says, by key."""
        return dict(self.environment)

    @property
    def clocks(self) -> dict[str, float]:
        """Frequency of each named clock, in Hz."""
        return dict(self.clocks_hz)


@frozen
class Sample:
    """One value of one counter in one run.

    Parameters
    ----------
    run
        Number of the run, from 0.
    layer
        Index of the layer; None is the whole network.
    counter
        What was counted: "latency", "energy", "cpu_cycles", a PMU event ...
    clock
        Clock the value is in cycles of; None for anything else.
    unit
        "cycles", "us", "uj", "events" ...
    """

    run: int
    layer: int | None = None
    counter: str
    clock: str | None = None
    value: float
    unit: str

    def __post_init__(self) -> None:
        """Refuse what the schema does not accept."""
        check_sample(list_fields(self), "sample")


def check_counts(samples: Sequence[Sample], where: str) -> None:
    """Refuse counts no clock makes: all ones, as a register that is not there reads, and none.

    Parameters
    ----------
    samples
        Of whole runs; a layer may take no tick of a coarse timer, a network takes some.
    where
        Board or file, for the refusal.

    Raises
    ------
    MeasurementError
        Naming run, counter and what was counted.
    """
    most: dict[tuple[int, str], float] = {}
    for sample in samples:
        if sample.clock not in ("cpu", "timer") or sample.counter not in _COUNTS:
            continue
        if sample.value == ALL_ONES:
            raise MeasurementError(f"{where}: run {sample.run}: {sample.counter} is {ALL_ONES:,}: "
                                   "all bits are set, as of a counter that is not there or full")
        key = (sample.run, sample.counter)
        if most.get(key) != -math.inf:  # of a whole inference that is none, whatever comes later
            most[key] = max(most.get(key, 0.0), sample.value)
        if sample.layer is None and sample.value == 0:
            most[key] = -math.inf
    for (run, counter), value in most.items():
        if value <= 0:
            raise MeasurementError(f"{where}: run {run}: {counter} is 0 of a whole inference: the "
                                   "counter stands still; is it enabled, and its clock on?")


def parse_object(text: str, where: str) -> JsonObject:
    """Parse one JSON object, refusing anything else and keys given twice; `where` names it."""
    def unique(pairs: list[tuple[str, Any]]) -> JsonObject:
        document = dict(pairs)
        if len(document) != len(pairs):
            raise MeasurementError(f"{where}: a key is given twice")
        return document

    with reworded(DocumentError, MeasurementError, f"{where}: "):
        document = parse_json(text, pairs=unique)
    if not isinstance(document, dict):
        raise MeasurementError(f"{where}: a JSON object is expected")
    return document


def _check_types(document: Mapping[str, Any], types: Mapping[str, tuple[type, ...]],
                 where: str) -> None:
    for name in document:
        check_known(f"{where}: unknown key", name, types, MeasurementError)
    for name, accepted in types.items():
        if name not in document:
            raise MeasurementError(f"{where}: key {name!r} is missing")
        value = document[name]
        if not isinstance(value, accepted) or isinstance(value, bool):
            names = " or ".join("null" if t is type(None) else t.__name__ for t in accepted)
            raise MeasurementError(f"{where}: {name} is {value!r}; accepted: {names}")


def check_header(document: Mapping[str, Any], where: str) -> None:
    """Refuse a header with an unknown, missing or impossible entry, naming it."""
    _check_types(document, _HEADER_TYPES, where)
    if document["schema"] != SCHEMA:
        raise MeasurementError(f"{where}: schema {document['schema']} is not known; "
                               f"accepted: {SCHEMA}")
    check_known(f"{where}: kind", document["kind"], KINDS, MeasurementError)
    if document["temperature"] not in (*TEMPERATURES, None):
        raise MeasurementError(f"{where}: temperature {document['temperature']!r}; "
                               + did_you_mean(document["temperature"], TEMPERATURES))
    if document["supply_v"] is not None and not 0 < document["supply_v"] < math.inf:
        raise MeasurementError(f"{where}: supply_v is {document['supply_v']}; accepted: above 0")
    for key, value in dict(document["clocks_hz"]).items():
        if isinstance(value, bool) or not isinstance(value, int | float) \
                or not 0 < value < math.inf:
            raise MeasurementError(f"{where}: clocks_hz.{key} is {value!r}; accepted: above 0 Hz")
    for name in ("placement", "environment"):
        for key, value in dict(document[name]).items():
            if not isinstance(value, str):
                raise MeasurementError(f"{where}: {name}.{key} is {value!r}; accepted: str")


def check_sample(document: Mapping[str, Any], where: str) -> None:
    """Refuse a sample with an unknown, missing or impossible entry, naming it."""
    _check_types(document, _SAMPLE_TYPES, where)
    if document["run"] < 0 or (document["layer"] or 0) < 0:
        raise MeasurementError(f"{where}: run and layer are counted from 0")
    if not -MAX_VALUE <= document["value"] <= MAX_VALUE:  # also refuses NaN and huge integers
        raise MeasurementError(f"{where}: value is {document['value']}; a finite number is needed")
    if (document["clock"] is not None or document["counter"] in _COUNTS) and (
            document["unit"] not in COUNTED[:2]):
        raise MeasurementError(f"{where}: unit {document['unit']!r} of {document['counter']}, a "
                               f"count of a clock; accepted: {', '.join(COUNTED[:2])}")
    if document["unit"] in COUNTED and not 0 <= document["value"] <= MAX_COUNT:
        raise MeasurementError(f"{where}: {document['counter']} is {document['value']:g} "
                               f"{document['unit']}; accepted: 0 to {MAX_COUNT:g}")
