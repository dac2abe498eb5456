"""The facts of a neural processing unit: units, stream engines, interfaces, pools, energy.

Parts, not one product: a unit kind has a count and rates, a pool a width and a clock. Cycles are
of the NPU's clock unless the name says otherwise. A field with a `Key` is a key of the board file.
"""

from __future__ import annotations

from typing import Annotated

from hwmodels.board.declaration import (
    AMOUNT,
    COUNT,
    CYCLES,
    ENERGY,
    RATE,
    SIZE,
    SWITCH,
    TEXT,
    VOLTAGE,
    WHOLE_CYCLES,
    Key,
    Quantity,
    Reference,
    Several,
    Table,
)
from hwmodels.errors import BoardError, did_you_mean
from hwmodels.frozen import NamedNumbers, frozen

ROLES = ("convolution", "depthwise", "dense", "pooling", "arithmetic", "activation",
         "weight_decode")
"""What a unit does: multiply and accumulate over all channels, within each, or of a fully connected
layer where that differs from a convolution; take averages or maxima of a window, add and scale,
look functions up, unpack weights."""

MULTIPLYING = ("convolution", "depthwise", "dense")
"""Roles whose work is multiply-accumulates, against weights that are streamed in."""

THROUGH = "NULL"
"""Unit of a path from an engine to an engine that computes nothing; no board lists it."""

BURST_BEATS = (1, 2, 4, 8)
"""Lengths of bursts the debug unit counts."""


@frozen
class UnitKind:
    """One kind of processing unit: what it does, how many there are and how fast one is.

    Parameters
    ----------
    kind
        Its maker's name for it.
    """

    kind: str
    roles: Annotated[tuple[str, ...], Key(Several(TEXT), f"What it does: {', '.join(ROLES)}.")]
    count: Annotated[int, Key(COUNT, "How many there are.")]
    macs_per_cycle: Annotated[NamedNumbers, Key(
        Table(RATE, "BITS"), "Peak of one unit by operand widths, 8x8 being activations by "
                             "weights in bits.")] = ()
    ops_per_cycle: Annotated[float, Key(
        RATE, "Elements one unit takes in a cycle where it does not multiply and "
              "accumulate.")] = 1.0
    fill_cycles: Annotated[int, Key(
        WHOLE_CYCLES, "From the first element in to the first element out.")] = 0
    barrier_cycles: Annotated[int, Key(
        WHOLE_CYCLES, "Until all of those that share work have met.")] = 0
    lanes: Annotated[int, Key(
        COUNT, "Channels of the input it takes side by side; where they are no multiple of it, "
               "one at a time.")] = 1
    output_cycles: Annotated[float, Key(
        CYCLES, "For each output beside its MACs or elements.")] = 0.0
    pixel_cycles: Annotated[float, Key(
        CYCLES, "For each pixel of the output, all its channels: loops around the inner "
                "ones.")] = 0.0

    def __post_init__(self) -> None:
        """Refuse a role that is not known."""
        for role in self.roles:
            if role not in ROLES:
                raise BoardError(f"npu unit {self.kind!r}: role {role!r} is not known; "
                                 + did_you_mean(role, ROLES))

    def peak_macs(self, bits: str) -> float:
        """Return multiply-accumulates of one unit in a cycle at operand widths such as "8x8"."""
        rates = dict(self.macs_per_cycle)
        if bits not in rates:
            raise BoardError(f"npu unit {self.kind!r} states no macs_per_cycle of {bits}; it has: "
                             + (", ".join(rates) or "none"))
        return rates[bits]


@frozen
class Interface:
    """A bus interface stream engines share; reads and writes are channels of their own."""

    name: str
    width_bytes: Annotated[int, Key(SIZE, "Of one beat.", required=True)] = 8
    write_gap_cycles: Annotated[float, Key(
        CYCLES, "Cycles a write burst holds the channel beyond its beats.")] = 0.0
    any_length: Annotated[bool, Key(
        SWITCH, "Whether bursts have any number of beats; otherwise 1, 2, 4 or 8.")] = False


@frozen
class Pool:
    """A memory as the NPU's compiler and its stream engines meet it.

    Parameters
    ----------
    external
        Outside the chip, or a flash on it: each run waits for the latency.
    wait_event, byte_event
        What its waiting and its bytes are billed as.
    clock_ratio
        NPU cycles in one cycle of its clock.
    """

    name: str
    memory: Annotated[str, Key(Reference("memory"), "The board's memory it is in.")]
    size_bytes: Annotated[int, Key(
        SIZE, "What a compiler may place in it; absent: the memory's.")] = 0
    external: bool = False
    wait_event: str = "npu_ram_wait"
    byte_event: str = "npu_ram_byte"
    byte_width_bytes: Annotated[int, Key(
        SIZE, "Of the compiler's cost of a beat: up to so many bytes.", required=True)] = 8
    frequency_ratio: Annotated[float, Key(
        RATE, "Of the compiler's cost of a beat: so many NPU cycles.", required=True)] = 1.0
    serialises: Annotated[bool, Key(
        SWITCH, "Whether its engines take turns, in the compiler's rule and in the model; "
                "otherwise each has a bank of its own.")] = True
    clock: Annotated[str, Key(
        Reference("clock"), "Of the path to it; absent: the memory's.", required=False)] = "npu"
    clock_ratio: float = 1.0
    bytes_per_cycle: Annotated[float, Key(
        RATE, "Sustained, per cycle of that clock; a beat takes at least one cycle; absent: the "
              "memory's.")] = 8.0
    read_latency_cycles: Annotated[float, Key(
        CYCLES, "Cycles of that clock before the first beat; outside the chip, each run of a walk "
                "that is not contiguous pays it again; absent: the memory's.")] = 0.0
    write_latency_cycles: Annotated[float, Key(CYCLES, "Likewise, of a write.")] = 0.0
    shared: Annotated[bool, Key(SWITCH, "Whether reads and writes take turns.")] = False
    burst_max_beats: Annotated[int, Key(COUNT, "Longest burst.")] = 8
    cacheable: Annotated[bool, Key(SWITCH, "Whether the NPU cache may hold its lines.")] = False
    reads_in_flight: Annotated[int, Key(
        AMOUNT, "Read bursts it takes at a time from one port; 0: any number.")] = 0
    writes_in_flight: Annotated[int, Key(AMOUNT, "Likewise, of writes.")] = 0
    configs: Annotated[tuple[str, ...], Key(
        Several(TEXT), "Configurations of the NPU it is there for; absent: any.",
        required=False)] = ()
    system: Annotated[str, Key(
        TEXT, "Name of the system its compiler is given with it; absent: one made of the pools' "
              "facts.", required=False)] = ""
    staging: Annotated[bool, Key(
        SWITCH, "Whether weights are brought to it before a layer, and nothing else is placed in "
                "it.")] = False
    resident: Annotated[bool, Key(
        SWITCH, "Whether weights are copied to it once, before the first inference, and nothing "
                "else is placed in it.")] = False
    scratch: Annotated[bool, Key(
        SWITCH, "Whether tiles pass through it on their way to the units, and nothing is placed "
                "in it.")] = False
    banks: Annotated[int, Key(
        COUNT, "Interleaved by word, for units with an access each in a cycle; absent: no access "
               "waits for another.")] = 0

    @property
    def holds_buffers(self) -> bool:
        """Whether tensors may be placed in it."""
        return not (self.staging or self.resident or self.scratch)


@frozen
class NpuCache:
    """The cache between the interfaces and memory outside the chip."""

    size_bytes: Annotated[int, Key(SIZE, "What it holds.")]
    line_bytes: Annotated[int, Key(SIZE, "Of a line.")]
    ways: Annotated[int, Key(COUNT, "Lines of a set.")]
    enabled: Annotated[bool, Key(SWITCH, "Whether it is on.")] = True


@frozen
class HandOver:
    """What the host core does before and after a task, in cycles of its own clock."""

    clock: Annotated[str, Key(Reference("clock"), "The host core's clock.")]
    pre_cycles: Annotated[float, Key(CYCLES, "Before any epoch.")]
    post_cycles: Annotated[float, Key(CYCLES, "After any epoch.")]
    pre_engine_cycles: Annotated[float, Key(CYCLES, "For each stream engine set up.")] = 0.0
    post_engine_cycles: Annotated[float, Key(CYCLES, "For each stream engine released.")] = 0.0
    pre_unit_cycles: Annotated[NamedNumbers, Key(
        Table(CYCLES, "KIND"), "For each unit set up, by kind.")] = ()
    post_unit_cycles: Annotated[NamedNumbers, Key(
        Table(CYCLES, "KIND"), "For each unit released, by kind.")] = ()
    pre_further_unit_cycles: Annotated[NamedNumbers, Key(
        Table(CYCLES, "KIND"),
        "For each unit of a kind after the first, where that is less.")] = ()
    pre_coefficient_cycles: Annotated[float, Key(
        CYCLES, "For each value written into a unit: a channel's scale and bias, a segment of a "
                "function.")] = 0.0
    controller_pre_cycles: Annotated[float | None, Key(
        CYCLES, "To start the epoch controller on epochs that follow one another; absent: as "
                "before the first of them.", required=False)] = None
    controller_post_cycles: Annotated[float | None, Key(
        CYCLES, "To take its interrupt; absent: as after the last of them.",
        required=False)] = None
    software_cycles: Annotated[float, Key(
        CYCLES, "To dispatch an epoch that runs on the host; what it computes is not in it.")] = 0.0


@frozen
class NpuEnergy:
    """Energy at the rail; None is not known.

    Parameters
    ----------
    byte_pj : tuple of (str, float)
        Per byte moved, by pool.
    """

    mac_pj: Annotated[NamedNumbers, Key(
        Table(ENERGY, "BITS"), "Per multiply-accumulate by operand widths.")] = ()
    op_pj: Annotated[float | None, Key(ENERGY, "Per other operation.")] = None
    active_pj_per_cycle: Annotated[float | None, Key(
        ENERGY, "Clock tree and engines per NPU cycle, epoch running.")] = None
    idle_pj_per_cycle: Annotated[float | None, Key(
        ENERGY, "Clock tree and engines per NPU cycle, none running.")] = None
    reference_core_v: Annotated[float | None, Key(
        VOLTAGE, "Core voltage these energies were taken at: they go with its square; absent: "
                 "they hold at any.", required=False)] = None
    byte_pj: NamedNumbers = ()


@frozen
class Npu:
    """A neural processing unit.

    Parameters
    ----------
    name
        The board's.
    sizes
        Configurations the board states memories of.
    hand_over
        What the host does around a task.
    """

    name: str
    family: Annotated[str, Key(TEXT, "neural-art, ethos-u, ...")]
    config: Annotated[str, Key(
        TEXT, "Product and size, of a family with several: a key of `hwmodels/npus/ethos-u.yaml`, "
              "which states units, interfaces and rates of each.", required=False)] = ""
    memory_mode: Annotated[str, Key(
        TEXT, "How its compiler lays a network out, of a compiler with several ways.",
        required=False)] = ""
    optimise: Annotated[str, Key(
        TEXT, "What its compiler is asked to favour, of a compiler with a choice: Performance, "
              "Size.", required=False)] = "Performance"
    compiler_file: Annotated[str, Key(
        TEXT, "A file of settings its compiler reads before ours, which `pools.NAME.system` may "
              "name a part of.", required=False)] = ""
    scratch_bytes: Annotated[int, Key(
        Quantity(dimension="bytes", low=0, high=2**30, whole=True),
        "Fast memory its compiler may use beside an arena outside the chip; 0: all of the first "
        "pool.")] = 0
    rates: Annotated[NamedNumbers, Key(
        Table(AMOUNT, "NAME"), "Further numbers of the configuration its compiler's rules go "
                               "by.", required=False)] = ()
    clock: Annotated[str, Key(Reference("clock"), "Its clock; every NPU cycle is of it.")]
    frequency_hz: float
    units: tuple[UnitKind, ...]
    engines: Annotated[int, Key(COUNT, "Stream engines.")]
    engine_name: Annotated[str, Key(
        TEXT, "Its maker's name for one, as timelines show it.")] = "engine"
    engine_buffer_bytes: Annotated[int, Key(
        SIZE, "What one engine holds ahead of, or behind, the units.")]
    engine_bytes_per_cycle: Annotated[float, Key(
        RATE, "What one engine passes between memory and units in a cycle.", required=True)] = 2.0
    strided_read_bytes_per_cycle: Annotated[float | None, Key(
        RATE, "What one passes where it reads runs apart from one another; absent: as any.")] = None
    engine_outstanding: Annotated[int, Key(
        COUNT, "Read bursts one engine has in flight: they share the pool's latency.",
        required=True)] = 8
    weight_bytes_per_cycle: Annotated[float, Key(
        RATE, "What a stream of weights passes to the convolution units in a cycle.")] = 1.0
    weight_ahead_bytes: Annotated[int, Key(
        Quantity(dimension="bytes", low=0, high=2**30, whole=True),
        "Weights a convolution holds before its first output, at most.")] = 0
    interfaces: tuple[Interface, ...]
    pools: tuple[Pool, ...]
    sizes: tuple[str, ...] = ()
    cache: NpuCache | None = None
    start_cycles: Annotated[int, Key(
        WHOLE_CYCLES, "From the host's start to the first request, and from the last beat to the "
                      "host seeing it.", required=True)] = 0
    hand_over: HandOver
    energy: NpuEnergy = NpuEnergy()
    sums_directions: Annotated[bool, Key(
        SWITCH, "Whether the compiler's rule adds the reads and writes of a pool.")] = False
    epoch_controller: Annotated[bool, Key(
        SWITCH, "Whether epochs follow one another without the host between them.")] = False
    controller_word_cycles: Annotated[float, Key(
        CYCLES, "NPU cycles the controller takes for a word of its program; an epoch it starts "
                "waits for nothing else.")] = 0.0
    controller_words: Annotated[NamedNumbers, Key(
        Table(AMOUNT, "PART"), "Words of its program for each epoch (task), engine, unit and value "
                               "written into a unit.")] = ()

    def unit(self, kind: str) -> UnitKind:
        """Return the units of that kind."""
        for unit in self.units:
            if unit.kind == kind:
                return unit
        raise BoardError(f"{self.name}: npu has no unit {kind!r}; "
                         + did_you_mean(kind, [unit.kind for unit in self.units]))

    def roles(self, kind: str) -> tuple[str, ...]:
        """Return what the units of that kind do; nothing for a path without units."""
        return () if kind == THROUGH else self.unit(kind).roles

    def unit_for(self, *roles: str) -> UnitKind | None:
        """Return the first units with the first of these roles any has; None without."""
        return next((unit for role in roles for unit in self.units if role in unit.roles), None)

    @property
    def staging(self) -> Pool | None:
        """The pool weights are brought to before a layer; None where units take them as streams."""
        return next((pool for pool in self.pools if pool.staging), None)

    @property
    def resident(self) -> Pool | None:
        """The pool weights stay in from the first inference on; None without one."""
        return next((pool for pool in self.pools if pool.resident), None)

    @property
    def scratch(self) -> Pool | None:
        """The pool tiles pass through; None where units reach the others themselves."""
        return next((pool for pool in self.pools if pool.scratch), None)

    def interface(self, name: str) -> Interface:
        """Return the interface of that name."""
        for interface in self.interfaces:
            if interface.name == name:
                return interface
        raise BoardError(f"{self.name}: npu interface {name!r} does not exist; "
                         + did_you_mean(name, [part.name for part in self.interfaces]))

    def pool(self, name: str) -> Pool:
        """Return the pool of that name."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise BoardError(f"{self.name}: npu pool {name!r} does not exist; "
                         + did_you_mean(name, [pool.name for pool in self.pools]))
