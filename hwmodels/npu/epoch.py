"""What an NPU is asked to do, and what it did: epochs and their runs.

An epoch is a set of stream engines, processing units and the dataflow between them, which runs
without the host. Cycles are of the NPU's clock unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hwmodels.counts import Counts
from hwmodels.errors import KernelError

EPOCH_KINDS = ("hw", "hybrid", "sw", "copy")
"""hw: units and engines alone; hybrid: host and engines; sw: host alone; copy: engines alone."""

PATTERNS = ("contiguous", "strided", "channel_interleaved")
"""How an engine walks memory. All but contiguous move runs of `run_bytes` each in beats of its
own; in a channel-interleaved walk a run is one channel's element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitWork:
    """Work for units of one kind, side by side.

    Parameters
    ----------
    kind : str
        As the board names it, or `board.npu.THROUGH`.
    count : int
        Units that share the work.
    ops : int
        Operations other than multiply-accumulates: elements taken.
    macs : int
        Multiply-accumulates.
    mac_bits : tuple of (int, int)
        Widths of activations and weights.
    compute_cycles : int or None
        Where a compiler states them; None: from `macs`, `ops` and the unit's rates.
    coefficients : int
        Values written into the unit before it starts: scales and biases by channel, a function's
        segments.
    """

    kind: str
    count: int = 1
    ops: int = 0
    macs: int = 0
    mac_bits: tuple[int, int] = (8, 8)
    compute_cycles: int | None = None
    coefficients: int = 0

    def __post_init__(self) -> None:
        """Refuse work without a unit and negative work."""
        if not self.kind or self.count < 1 or min(self.ops, self.macs, self.coefficients) < 0:
            raise KernelError(f"unit work of kind {self.kind!r}, count {self.count}: accepted: "
                              "the name of a unit, count at least 1, no negative work")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEngine:
    """One stream: an engine, the interface and pool it is bound to, and how it walks.

    Parameters
    ----------
    index : int
        Of the engine, unique in its epoch.
    direction : str
        "in": from memory to units; "out": from units to memory.
    interface : str
        Name of the NPU's bus interface.
    pool : str
        Name of the pool.
    bytes : int
        Bytes wanted from or given to memory, in one pass.
    element_bytes : int
        Of one element.
    pattern : str
        One of `PATTERNS`.
    run_bytes : int
        Contiguous bytes of one run; ignored when contiguous.
    stride_bytes : int
        From one run to the next; 0: not known.
    buffer_bytes : int
        Size of the buffer walked over, as profilers report it; not the traffic.
    repeats : int
        Passes over the same bytes.
    window_bytes : int
        What is walked before a line is met again; 0: all of it, as far as is known.
    operand : str
        "weights", "input", "output" or "".
    encoded : bool
        Whether weights pass a decompression unit.
    """

    index: int
    direction: str
    interface: str
    pool: str
    bytes: int
    element_bytes: int = 1
    pattern: str = "contiguous"
    run_bytes: int = 0
    stride_bytes: int = 0
    buffer_bytes: int = 0
    repeats: int = 1
    window_bytes: int = 0
    operand: str = ""
    encoded: bool = False

    def __post_init__(self) -> None:
        """Refuse a direction or pattern that is not known and what no engine can do."""
        where = f"stream engine {self.index}"
        if self.direction not in ("in", "out"):
            raise KernelError(f"{where}: direction {self.direction!r}; accepted: in, out")
        if self.pattern not in PATTERNS:
            raise KernelError(f"{where}: pattern {self.pattern!r}; accepted: "
                              + ", ".join(PATTERNS))
        if self.bytes < 0 or self.repeats < 1 or self.element_bytes < 1:
            raise KernelError(f"{where}: bytes {self.bytes}, repeats {self.repeats}; accepted: "
                              "no negative bytes, at least one pass")
        if self.pattern != "contiguous" and self.run_bytes < 1:
            raise KernelError(f"{where}: a {self.pattern} walk needs run_bytes of at least 1")


    def bound(self, index: int, interface: str) -> StreamEngine:
        """Return it with index and interface; `dataclasses.replace`, at a third of the time."""
        return StreamEngine(
            index=index, direction=self.direction, interface=interface, pool=self.pool,
            bytes=self.bytes, element_bytes=self.element_bytes, pattern=self.pattern,
            run_bytes=self.run_bytes, stride_bytes=self.stride_bytes,
            buffer_bytes=self.buffer_bytes, repeats=self.repeats, window_bytes=self.window_bytes,
            operand=self.operand, encoded=self.encoded)


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of the dataflow: "E3" is stream engine 3, "U0" the first of the epoch's units."""

    source: str
    sink: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What runs between two hand-overs.

    Parameters
    ----------
    name : str
        As the compiler calls it.
    kind : str
        One of `EPOCH_KINDS`.
    units : tuple of UnitWork
        In dataflow order.
    engines : tuple of StreamEngine
        In and out.
    links : tuple of Link
        Dataflow; empty: all engines in feed the first unit, each unit the next, the last unit
        all engines out; without units the n-th engine in feeds the n-th out.
    operations : tuple of (str, int)
        Kind and number of operations, for reports.
    layers : tuple of int
        Indices of the model's layers it computes, for reports.
    """

    name: str
    kind: str = "hw"
    units: tuple[UnitWork, ...] = ()
    engines: tuple[StreamEngine, ...] = ()
    links: tuple[Link, ...] = ()
    operations: tuple[tuple[str, int], ...] = ()
    layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a kind that is not known and an engine listed twice."""
        if self.kind not in EPOCH_KINDS:
            raise KernelError(f"epoch {self.name}: kind {self.kind!r}; accepted: "
                              + ", ".join(EPOCH_KINDS))
        indices = [engine.index for engine in self.engines]
        if len(set(indices)) != len(indices):
            raise KernelError(f"epoch {self.name}: a stream engine is listed twice")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """One stream engine over an epoch.

    Parameters
    ----------
    active_cycles : int
        Cycles the engine had a burst under way, as a debug unit counts them.
    bytes : int
        Moved over the interface, whole beats.
    bursts : tuple of int
        By length, in the order of `BURST_BEATS`.
    """

    index: int
    direction: str
    interface: str
    pool: str
    buffer_bytes: int
    active_cycles: int
    bytes: int
    bursts: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceRun:
    """One interface over an epoch: bytes in whole beats, bursts by length."""

    name: str
    read_bytes: int
    write_bytes: int
    read_bursts: tuple[int, int, int, int]
    write_bursts: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRun:
    """One pool over an epoch: bytes wanted and given, and MB/s while the epoch ran."""

    name: str
    read_bytes: int
    write_bytes: int
    mb_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NpuCacheRun:
    """Counters of the NPU cache, as its monitor names them."""

    read_hit: int = 0
    read_miss: int = 0
    read_alloc_miss: int = 0
    read_evict: int = 0
    write_hit: int = 0
    write_miss: int = 0
    write_alloc_miss: int = 0
    write_through: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """NPU cycles a resource was what the epoch waited for.

    Parameters
    ----------
    resource : str
        "start", a unit kind, a pool, an interface ("busif0"), or "latency:POOL".
    cause : str
        The one of `hwmodels.counts.CAUSES` it is.
    """

    resource: str
    cause: str
    npu_cycles: int


class EpochDetails(Protocol):
    """What an epoch did, part by part; made when it is first asked for."""

    @property
    def engines(self) -> tuple[EngineRun, ...]:
        """Its stream engines."""

    @property
    def interfaces(self) -> tuple[InterfaceRun, ...]:
        """All interfaces of the machine."""

    @property
    def pools(self) -> tuple[PoolRun, ...]:
        """The pools its engines walk."""

    @property
    def cache(self) -> NpuCacheRun:
        """Counters of the NPU cache."""

    @property
    def exposed(self) -> tuple[Exposed, ...]:
        """Resources by cycles."""

    @property
    def counts(self) -> Counts:
        """Events."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpochRun:
    """What an epoch did.

    Parameters
    ----------
    epoch : Epoch
        What was asked.
    core_npu_cycles : int
        From start to end; 0 for a software epoch.
    compute_cycles : int
        Of the units with ideal memory.
    max_cycles : int
        The compiler's estimate of the same epoch, by its own rule.
    pre_cpu_cycles, post_cpu_cycles : int
        Of the host core.
    details : EpochDetails
        Part by part.
    """

    epoch: Epoch
    core_npu_cycles: int
    compute_cycles: int
    max_cycles: int
    pre_cpu_cycles: int
    post_cpu_cycles: int
    details: EpochDetails

    @property
    def engines(self) -> tuple[EngineRun, ...]:
        """Its stream engines."""
        return self.details.engines

    @property
    def interfaces(self) -> tuple[InterfaceRun, ...]:
        """All interfaces of the machine."""
        return self.details.interfaces

    @property
    def pools(self) -> tuple[PoolRun, ...]:
        """The pools its engines walk."""
        return self.details.pools

    @property
    def cache(self) -> NpuCacheRun:
        """Counters of the NPU cache."""
        return self.details.cache

    @property
    def exposed(self) -> tuple[Exposed, ...]:
        """Resources by cycles; their sum is `core_npu_cycles` exactly."""
        return self.details.exposed

    @property
    def counts(self) -> Counts:
        """Events of the epoch, NPU and host, to be priced by a board."""
        return self.details.counts

    def __eq__(self, other: object) -> bool:
        """Whether both did the same, wherever that is kept."""
        return isinstance(other, EpochRun) and self._told() == other._told()

    def __hash__(self) -> int:
        """Return a hash of what was asked and how long it took."""
        return hash((self.epoch, self.core_npu_cycles, self.pre_cpu_cycles, self.post_cpu_cycles))

    def _told(self) -> tuple[object, ...]:
        return (self.epoch, self.core_npu_cycles, self.compute_cycles, self.max_cycles,
                self.pre_cpu_cycles, self.post_cpu_cycles, self.engines, self.interfaces,
                self.pools, self.cache, self.exposed, self.counts)
