"""A schedule of tasks: what compilers hand to the hardware model, whatever they call its parts.

A task is what runs between two moments the host or a sequencer acts: work of units, transfers
between memories and units, and the dataflow that joins them. Tasks run one after another; within
a task everything without a link between it runs side by side.

A tiled loop whose transfers run beside the neighbours' work is one task a tile: a transfer for the
next tile stands in the task it runs beside, with `overlaps` "task". A cascade is one task for each
band of rows of each layer in the order they run; what a band leaves for the next is a `TaskBuffer`
smaller than its tensor.

Cycles are of the accelerator's clock unless the name says otherwise.
"""

from __future__ import annotations

from hwmodels.errors import KernelError, check_word
from hwmodels.frozen import NamedCounts, frozen, record

PATTERNS = ("contiguous", "strided", "channel_interleaved")
"""How a transfer walks memory. All but contiguous move runs of `run_bytes` each in beats of its
own; in a channel-interleaved walk a run is one channel's element."""

OVERLAPS = ("units", "task")
"""units: step by step with the units it feeds or empties; task: beside all of the task."""


@frozen
class UnitWork:
    """Work for units of one kind, side by side.

    Parameters
    ----------
    kind
        As the board names it, or `board.npu.THROUGH`.
    count
        Units that share the work.
    ops
        Operations other than multiply-accumulates: elements taken.
    macs
        Multiply-accumulates.
    mac_bits : tuple of (int, int)
        Widths of activations and weights.
    compute_cycles
        Where a compiler states them; None: from `macs`, `ops` and the unit's rates.
    useful
        Share of those cycles that computes, 0 to 1; None: `macs` over the peak.
    coefficients
        Values written into the unit before it starts: scales and biases by channel, a function's
        segments.
    waits : tuple of (str, int)
        Cycles of `compute_cycles` that compute nothing, for reports: "banks" of a shared memory,
        "loops" around the inner ones, a "barrier".
    single : bool
        Whether it has one buffer of results, not two: it begins a step when the unit behind has
        emptied that of the step before.
    """

    kind: str
    count: int = 1
    ops: int = 0
    macs: int = 0
    mac_bits: tuple[int, int] = (8, 8)
    compute_cycles: int | None = None
    useful: float | None = None
    coefficients: int = 0
    waits: NamedCounts = ()
    single: bool = False

    def __post_init__(self) -> None:
        """Refuse work without a unit, negative work and a share that is none."""
        if not self.kind or self.count < 1 or min(self.ops, self.macs, self.coefficients) < 0:
            raise KernelError(f"unit work of kind {self.kind!r}, count {self.count}: accepted: "
                              "the name of a unit, count at least 1, no negative work")
        if self.useful is not None and not 0 <= self.useful <= 1:
            raise KernelError(f"unit work of kind {self.kind!r}: useful {self.useful}; accepted: "
                              "0 to 1")


@frozen
class Transfer:
    """One DMA channel's work: the port and memory it is bound to, and how it walks.

    Parameters
    ----------
    channel
        Number of the channel, unique in its task.
    direction
        "in": from memory to units; "out": from units to memory.
    port
        Name of the accelerator's bus port.
    pool
        Name of the memory, as the accelerator reaches it.
    bytes
        Bytes wanted from or given to memory in one pass, compressed where they are kept so.
    unpacked_bytes
        Bytes of one pass the units take or give, where a decoder changes them; 0: `bytes`.
    pattern
        One of `PATTERNS`.
    run_bytes
        Contiguous bytes of one run; ignored when contiguous.
    stride_bytes
        From one run to the next; 0: not known.
    buffer_bytes
        Size of the buffer walked over, as profilers report it; not the traffic.
    repeats
        Passes over the same bytes.
    window_bytes
        What is walked before a line is met again; 0: all of it, as far as is known.
    operand
        "weights", "input", "output" or "".
    overlaps
        One of `OVERLAPS`; it holds where a task states no links of its own.
    outstanding
        Bursts in flight, which share the memory's latency, of a write as of a read; 0: reads as
        many as the board says of any channel, and writes wait for no answer.
    port_outstanding
        Bursts in flight of all that goes through its port that way; 0: no limit.
    ahead
        Whether it was asked for before the task began, so that its first data is there.
    """

    channel: int
    direction: str
    port: str
    pool: str
    bytes: int
    unpacked_bytes: int = 0
    pattern: str = "contiguous"
    run_bytes: int = 0
    stride_bytes: int = 0
    buffer_bytes: int = 0
    repeats: int = 1
    window_bytes: int = 0
    operand: str = ""
    overlaps: str = "units"
    outstanding: int = 0
    port_outstanding: int = 0
    ahead: bool = False

    def __post_init__(self) -> None:
        """Refuse a direction or pattern that is not known and what no channel can do."""
        where = f"transfer {self.channel}"
        for key, value, accepted in (("direction", self.direction, ("in", "out")),
                                     ("pattern", self.pattern, PATTERNS),
                                     ("overlaps", self.overlaps, OVERLAPS)):
            check_word(f"{where}: {key}", value, accepted, KernelError)
        if min(self.bytes, self.unpacked_bytes, self.outstanding) < 0 or self.repeats < 1:
            raise KernelError(f"{where}: bytes {self.bytes}, repeats {self.repeats}; accepted: "
                              "no negative bytes or bursts, at least one pass")
        if self.pattern != "contiguous" and self.run_bytes < 1:
            raise KernelError(f"{where}: a {self.pattern} walk needs run_bytes of at least 1")


@record
class Link:
    """One edge of the dataflow: "E3" is the transfer of channel 3, "U0" the task's first units."""

    source: str
    sink: str


@frozen
class TaskBuffer:
    """Bytes of a tensor kept in memory between tasks.

    Parameters
    ----------
    size_bytes
        Less than the tensor's where it rolls: only as many rows as its readers are behind.
    first, last
        Layers of the network, the first that writes it and the last that reads it.
    """

    tensor: int
    size_bytes: int
    first: int
    last: int


@frozen
class Task:
    """What the hardware runs from one launch to the next.

    Parameters
    ----------
    name
        As the compiler calls it.
    kind
        The compiler's word for what it is; the model does not read it.
    layers
        Indices of the model's layers it computes.
    units
        In dataflow order.
    links
        Dataflow; empty: all transfers in feed the first unit, each unit the next, the last unit
        all transfers out, but for those that overlap with the task; without units the n-th
        transfer in feeds the n-th out.
    operations : tuple of (str, int)
        Kind and number of operations, for reports.
    steps
        Blocks the work is cut into: units and transfers hand on whole blocks, weights as they
        come; 0: all hand on as they go.
    start_cycles
        From the launch to the first request, and from the last beat to the end.
    host_before_cycles, host_after_cycles
        Of the host's clock, which the accelerator waits for.
    """

    name: str
    kind: str = ""
    layers: tuple[int, ...] = ()
    units: tuple[UnitWork, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    links: tuple[Link, ...] = ()
    operations: NamedCounts = ()
    steps: int = 0
    start_cycles: int = 0
    host_before_cycles: int = 0
    host_after_cycles: int = 0

    def __post_init__(self) -> None:
        """Refuse a channel listed twice and negative cycles."""
        channels = [transfer.channel for transfer in self.transfers]
        if len(set(channels)) != len(channels):
            raise KernelError(f"task {self.name}: a channel is listed twice")
        if min(self.start_cycles, self.host_before_cycles, self.host_after_cycles) < 0:
            raise KernelError(f"task {self.name}: negative cycles before or after; accepted: 0 "
                              "and more")

    @property
    def on_host(self) -> bool:
        """Whether nothing of it runs on the accelerator."""
        return not (self.units or self.transfers)


@frozen
class PoolRun:
    """One memory over a task: bytes wanted and given, and MB/s while the task ran."""

    name: str
    read_bytes: int
    write_bytes: int
    mb_per_s: float


@frozen
class Exposed:
    """Cycles a resource was what the task waited for.

    Parameters
    ----------
    resource
        "start", a unit kind, a memory, a port, or "latency:MEMORY".
    cause
        The one of `hwmodels.counts.CAUSES` it is.
    """

    resource: str
    cause: str
    npu_cycles: int
