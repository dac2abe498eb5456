"""Payloads, numbers and names of the wire; `firmware/protocol/wire.h` is the specification.

Field names and layouts follow the header; a test reads it and compares both.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import ClassVar, Self

from calibration.errors import LinkError
from hwmodels.file_cache import read_yaml_once
from hwmodels.frozen import frozen

VERSION = 1
OLDEST = 1

_NUMBERS = read_yaml_once(Path(__file__).parents[1] / "numbers.yaml")
TYPES: Mapping[str, int] = _NUMBERS["types"]
ERRORS: Mapping[str, int] = _NUMBERS["errors"]
ERROR_TEXTS: Mapping[int, str] = _NUMBERS["error_texts"]
FEATURES: Mapping[str, int] = _NUMBERS["features"]
CLOCKS: Mapping[int, str | None] = _NUMBERS["clocks"]
"""Clock of a counter by its number; None counts events."""
COUNTER_IDS: Mapping[str, int] = _NUMBERS["counter_ids"]
CONFIG_FLAGS: Mapping[str, int] = _NUMBERS["config_flags"]
SPACES: Mapping[str, int] = _NUMBERS["spaces"]

LAYER_INFERENCE = 0xFFFF
LAYER_SETUP = 0xFFFE
NO_LAYER = 0xFFFF
EVENTS_MAX = 8
UNKNOWN = -(1 << 31)


@frozen
class Payload:
    """Fields in the order of a struct of the header; bytes that are text become str."""

    LAYOUT: ClassVar[struct.Struct]
    TEXTS: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, layout: str = "", texts: tuple[str, ...] = ()) -> None:
        """Keep the struct's layout and which fields are text."""
        if layout:  # a class with slots is made twice
            cls.LAYOUT, cls.TEXTS = struct.Struct(layout), texts

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the known beginning of a payload; LinkError when it is shorter than that."""
        if len(data) < cls.LAYOUT.size:
            raise LinkError(f"the board's {cls.__name__} has {len(data)} bytes; "
                            f"{cls.LAYOUT.size} are needed")
        names = [field.name for field in fields(cls)]
        values = dict(zip(names, cls.LAYOUT.unpack_from(data), strict=True))
        for name in cls.TEXTS:
            values[name] = values[name].partition(b"\0")[0].decode("ascii", "replace")
        return cls(**values)

    def pack(self) -> bytes:
        """Return the bytes of the struct."""
        values = [getattr(self, field.name) for field in fields(self)]
        return self.LAYOUT.pack(*(v.encode() if isinstance(v, str) else v for v in values))


@frozen
class Hello(Payload, layout="<HHII"):
    """Versions, features and the session asked for."""

    version: int = VERSION
    oldest: int = OLDEST
    features: int = sum(FEATURES.values())
    session: int


@frozen
class HelloReply(Payload, layout="<HHIII"):
    """What the board speaks, and whether it still knows the session."""

    version: int
    oldest: int
    features: int
    session: int
    resumed: int


@frozen
class Identity(Payload, layout="<9I4H16s32s32s24s32s64s", texts=("port", "model", "compiler")):
    """The part, the image and the model in it (`struct wire_identify_reply`)."""

    core_id: int
    cpu_hz: int
    timer_hz: int
    features: int
    input_bytes: int
    output_bytes: int
    arena_bytes: int
    weights_bytes: int
    sample_capacity: int
    layers: int
    counters: int
    counters_at_once: int
    text_model: int
    unique_id: bytes
    model_sha256: bytes
    build_sha256: bytes
    port: str
    model: str
    compiler: str

    def has(self, feature: str) -> bool:
        """Whether the board has a feature of `FEATURES`."""
        return bool(self.features & FEATURES[feature])


@frozen
class Listing(Payload, layout="<HH"):
    """Head of a list of counters: which come now, how many there are."""

    first: int
    count: int


@frozen
class Counter(Payload, layout="<HBB20s", texts=("name",)):
    """One counter of the board."""

    id: int
    clock: int
    bits: int
    name: str


@frozen
class Layer(Payload, layout="<HHII64s", texts=("name",)):
    """One entry of the board's call list."""

    index: int
    model_layer: int
    output_offset: int
    output_bytes: int
    name: str


@frozen
class LoadReply(Payload, layout="<II"):
    """How far the input has come."""

    next: int
    checksum: int


@frozen
class Config(Payload, layout="<IHHIHH16s"):
    """What the next runs do (`struct wire_config`)."""

    warmup: int = 0
    flags: int = 0
    repeat_layer: int = NO_LAYER
    repeat: int = 1
    stop_layer: int = NO_LAYER
    events: int = 0
    event: bytes = b""

    @staticmethod
    def pack_events(events: tuple[int, ...]) -> bytes:
        """Return the array of event ids."""
        return struct.pack(f"<{EVENTS_MAX}H", *events, *[0] * (EVENTS_MAX - len(events)))


@frozen
class ConfigReply(Payload, layout="<QII"):
    """How long preparing the model took, and what one run leaves."""

    setup_cycles: int
    setup_clock: int
    samples_per_run: int


@frozen
class Run(Payload, layout="<II"):
    """Which runs to make."""

    first_run: int
    runs: int


@frozen
class RunReply(Payload, layout="<6I"):
    """Which runs were made."""

    first_run: int
    done: int
    samples_next: int
    checksum: int
    mismatches: int
    reserved: int


@frozen
class SamplesReply(Payload, layout="<IHHII"):
    """Head of a list of samples."""

    first: int
    count: int
    reserved: int
    next: int
    reserved2: int


@frozen
class RawSample(Payload, layout="<IHBBQ"):
    """One value of one counter, as the board numbers them."""

    run: int
    layer: int
    counter: int
    clock: int
    value: int


@frozen
class Overhead(Payload, layout="<4IQ"):
    """Cycles between two samples with nothing in between."""

    reads: int
    clock: int
    least: int
    most: int
    sum: int


@frozen
class Status(Payload, layout="<8I"):
    """Where the board stands."""

    session: int
    loaded_bytes: int
    runs: int
    samples_first: int
    samples_next: int
    frames_good: int
    frames_bad: int
    text: int


@frozen
class Environment(Payload, layout="<iiiI"):
    """Die temperature, supply and clock source; `UNKNOWN` where the part does not tell."""

    temperature_mc: int
    supply_mv: int
    clock_source: int
    cpu_hz: int


@frozen
class BoardTime(Payload, layout="<QII"):
    """The board's own clock, since start."""

    ticks: int
    hz: int
    clock: int


@frozen
class ErrorReply(Payload, layout="<BBhI"):
    """Why a request was refused."""

    type: int
    reserved: int
    code: int
    detail: int
