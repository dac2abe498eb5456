"""Payloads, numbers and names of the wire; `firmware/protocol/wire.h` is the specification.

Field names and layouts follow the header; a test reads it and compares both.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from calibration.errors import LinkError

VERSION = 1
OLDEST = 1

TYPES: Mapping[str, int] = {
    "HELLO": 0x80, "IDENTIFY": 0x81, "COUNTERS": 0x82, "LAYER": 0x83, "LOAD": 0x84,
    "CONFIG": 0x85, "RUN": 0x86, "SAMPLES": 0x87, "CHECKSUM": 0x88, "OVERHEAD": 0x89,
    "STATUS": 0x8A, "IDLE": 0x8B, "READ": 0x8C, "ENVIRONMENT": 0x8D, "TIME": 0x8E, "BYE": 0x8F,
    "LOG": 0x90, "ERROR": 0xFF,
}
ERRORS: Mapping[str, int] = {
    "TYPE": -1, "LENGTH": -2, "VERSION": -3, "SESSION": -4, "ARGUMENT": -5, "UNSUPPORTED": -6,
    "INPUT": -7, "OFFSET": -8, "INTERNAL": -9,
}
ERROR_TEXTS: Mapping[int, str] = {
    -1: "it knows no such request", -2: "the payload should have {detail} bytes",
    -3: "it speaks version {detail}", -4: "there is no session: it has restarted",
    -5: "it does not accept the field at offset {detail}",
    -6: "its port lacks the feature {detail:#x}",
    -7: "the input is not complete: {detail} bytes are there",
    -8: "it goes on at offset {detail}", -9: "an internal fault at place {detail}",
}
FEATURES: Mapping[str, int] = {
    "CYCLES": 1 << 0, "TIMER": 1 << 1, "PMU": 1 << 2, "DWT8": 1 << 3, "CACHE_MONITOR": 1 << 4,
    "COLD": 1 << 5, "MASK": 1 << 6, "MARK": 1 << 7, "ENVIRONMENT": 1 << 8, "TEXT": 1 << 9,
    "SIMULATED": 1 << 10,
}
CLOCKS: Mapping[int, str | None] = {0: None, 1: "cpu", 2: "timer", 3: "bus", 4: "npu"}
"""Clock of a counter by its number; None counts events."""
COUNTER_IDS: Mapping[str, int] = {
    "CYCLES": 1, "TIMER": 2, "CHECKSUM": 3, "INTERRUPTS": 4, "INSTRUCTIONS": 5,
    "DWT_CPI": 0x10, "DWT_EXCEPTION": 0x11, "DWT_SLEEP": 0x12, "DWT_LSU": 0x13, "DWT_FOLD": 0x14,
    "ICACHE_HIT": 0x20, "ICACHE_MISS": 0x21, "DCACHE_READ_HIT": 0x22, "DCACHE_READ_MISS": 0x23,
    "DCACHE_WRITE_HIT": 0x24, "DCACHE_WRITE_MISS": 0x25, "XIP_ACCESS": 0x26, "XIP_HIT": 0x27,
    "PMU": 0x1000,
}
CONFIG_FLAGS: Mapping[str, int] = {
    "COLD": 1 << 0, "MASK": 1 << 1, "LAYERS": 1 << 2, "VERIFY": 1 << 3, "MARK_RUN": 1 << 4,
    "MARK_LAYER": 1 << 5,
}
SPACES: Mapping[str, int] = {"INPUT": 0, "OUTPUT": 1, "ARENA": 2}

LAYER_INFERENCE = 0xFFFF
LAYER_SETUP = 0xFFFE
NO_LAYER = 0xFFFF
EVENTS_MAX = 8
UNKNOWN = -(1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Fields in the order of a struct of the header; bytes that are text become str."""

    LAYOUT: ClassVar[struct.Struct]
    TEXTS: ClassVar[tuple[str, ...]] = ()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Payload):
    """Versions, features and the session asked for."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<HHII")
    version: int = VERSION
    oldest: int = OLDEST
    features: int = sum(FEATURES.values())
    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HelloReply(Payload):
    """What the board speaks, and whether it still knows the session."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<HHIII")
    version: int
    oldest: int
    features: int
    session: int
    resumed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity(Payload):
    """The part, the image and the model in it (`struct wire_identify_reply`)."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<9I4H16s32s32s24s32s64s")
    TEXTS: ClassVar[tuple[str, ...]] = ("port", "model", "compiler")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Payload):
    """Head of a list of counters: which come now, how many there are."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<HH")
    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter(Payload):
    """One counter of the board."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<HBB20s")
    TEXTS: ClassVar[tuple[str, ...]] = ("name",)
    id: int
    clock: int
    bits: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer(Payload):
    """One entry of the board's call list."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<HHII64s")
    TEXTS: ClassVar[tuple[str, ...]] = ("name",)
    index: int
    model_layer: int
    output_offset: int
    output_bytes: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReply(Payload):
    """How far the input has come."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<II")
    next: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Payload):
    """What the next runs do (`struct wire_config`)."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<IHHIHH16s")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReply(Payload):
    """How long preparing the model took, and what one run leaves."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<QII")
    setup_cycles: int
    setup_clock: int
    samples_per_run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Payload):
    """Which runs to make."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<II")
    first_run: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReply(Payload):
    """Which runs were made."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<6I")
    first_run: int
    done: int
    samples_next: int
    checksum: int
    mismatches: int
    reserved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesReply(Payload):
    """Head of a list of samples."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<IHHII")
    first: int
    count: int
    reserved: int
    next: int
    reserved2: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSample(Payload):
    """One value of one counter, as the board numbers them."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<IHBBQ")
    run: int
    layer: int
    counter: int
    clock: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksums(Payload):
    """CRC-32 of input, output and constants; runs whose output differed."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<4I")
    input: int
    output: int
    weights: int
    mismatches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead(Payload):
    """Cycles between two samples with nothing in between."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<4IQ")
    reads: int
    clock: int
    least: int
    most: int
    sum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Payload):
    """Where the board stands."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<8I")
    session: int
    loaded_bytes: int
    runs: int
    samples_first: int
    samples_next: int
    frames_good: int
    frames_bad: int
    text: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply(Payload):
    """Head of a piece of memory."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<II")
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment(Payload):
    """Die temperature, supply and clock source; `UNKNOWN` where the part does not tell."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<iiiI")
    temperature_mc: int
    supply_mv: int
    clock_source: int
    cpu_hz: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTime(Payload):
    """The board's own clock, since start."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<QII")
    ticks: int
    hz: int
    clock: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply(Payload):
    """Why a request was refused."""

    LAYOUT: ClassVar[struct.Struct] = struct.Struct("<BBhI")
    type: int
    reserved: int
    code: int
    detail: int
