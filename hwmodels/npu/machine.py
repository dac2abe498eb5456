"""The facts of a neural processing unit: units, stream engines, interfaces, pools, energy.

Parts, not one product: a unit kind has a count and rates, a pool a width and a clock. Cycles are
of the NPU's clock unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.errors import BoardError, did_you_mean

ROLES = ("convolution", "depthwise", "pooling", "arithmetic", "activation", "weight_decode")
"""What a unit does: multiply and accumulate over all channels or within each, take averages or
maxima of a window, add and scale, look functions up, unpack weights."""

MULTIPLYING = ("convolution", "depthwise")
"""Roles whose work is multiply-accumulates, against weights that are streamed in."""

THROUGH = "NULL"
"""Unit of a path from an engine to an engine that computes nothing; no board lists it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitKind:
    """One kind of processing unit.

    Parameters
    ----------
    kind : str
        Its maker's name for it.
    roles : tuple of str
        What it does, of `ROLES`.
    count : int
        How many there are.
    macs_per_cycle : tuple of (str, float)
        Peak of one unit by operand widths, "8x8" being activations by weights in bits.
    ops_per_cycle : float
        Elements one unit takes in a cycle where it does not multiply and accumulate.
    fill_cycles : int
        Cycles from the first element in to the first element out.
    """

    kind: str
    roles: tuple[str, ...]
    count: int
    macs_per_cycle: tuple[tuple[str, float], ...] = ()
    ops_per_cycle: float = 1.0
    fill_cycles: int = 0

    def __post_init__(self) -> None:
        for role in self.roles:
            if role not in ROLES:
                raise BoardError(f"npu unit {self.kind!r}: role {role!r} is not known; "
                                 + did_you_mean(role, ROLES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A bus interface stream engines share; reads and writes are channels of their own.

    Parameters
    ----------
    width_bytes : int
        Of one beat.
    write_gap_cycles : float
        Cycles a write burst holds the channel beyond its beats.
    """

    name: str
    width_bytes: int = 8
    write_gap_cycles: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A memory as the NPU's compiler and its stream engines meet it.

    Parameters
    ----------
    memory : str
        The board's memory it is in.
    size_bytes : int
        What a compiler may place in it.
    external : bool
        Outside the chip.
    byte_width_bytes, frequency_ratio : int, float
        The compiler's cost of a beat: up to so many bytes, so many NPU cycles.
    serialises : bool
        Whether its engines take turns, in the compiler's rule and in the model; otherwise each
        has a bank of its own.
    clock : str
        Clock of the path to it.
    clock_ratio : float
        NPU cycles in one cycle of that clock.
    bytes_per_cycle : float
        Sustained, per cycle of that clock; a beat takes at least one cycle.
    read_latency_cycles, write_latency_cycles : float
        Cycles of that clock before the first beat. Outside the chip, each run of a walk that is
        not contiguous is an access of its own and pays it again.
    shared : bool
        Whether reads and writes take turns.
    burst_max_beats : int
        Longest burst.
    cacheable : bool
        Whether the NPU cache may hold its lines.
    """

    name: str
    memory: str
    size_bytes: int = 0
    external: bool = False
    byte_width_bytes: int = 8
    frequency_ratio: float = 1.0
    serialises: bool = True
    clock: str = "npu"
    clock_ratio: float = 1.0
    bytes_per_cycle: float = 8.0
    read_latency_cycles: float = 0.0
    write_latency_cycles: float = 0.0
    shared: bool = False
    burst_max_beats: int = 8
    cacheable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NpuCache:
    """The cache between the interfaces and memory outside the chip."""

    size_bytes: int
    line_bytes: int
    ways: int
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """What the host core does before and after an epoch, in cycles of its own clock.

    Parameters
    ----------
    clock : str
        The host core's clock.
    pre_cycles, post_cycles : float
        Of any epoch.
    pre_engine_cycles, post_engine_cycles : float
        For each stream engine set up or released.
    pre_unit_cycles, post_unit_cycles : tuple of (str, float)
        For each unit set up or released, by kind.
    pre_further_unit_cycles : tuple of (str, float)
        For each unit of a kind after the first, where that is less.
    software_cycles : float
        To dispatch an epoch that runs on the host; what it computes is not in it.
    """

    clock: str
    pre_cycles: float
    post_cycles: float
    pre_engine_cycles: float = 0.0
    post_engine_cycles: float = 0.0
    pre_unit_cycles: tuple[tuple[str, float], ...] = ()
    post_unit_cycles: tuple[tuple[str, float], ...] = ()
    pre_further_unit_cycles: tuple[tuple[str, float], ...] = ()
    software_cycles: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NpuEnergy:
    """Energy at the rail; None is not known.

    Parameters
    ----------
    mac_pj : tuple of (str, float)
        Per multiply-accumulate by operand widths.
    op_pj : float or None
        Per other operation.
    active_pj_per_cycle, idle_pj_per_cycle : float or None
        Clock tree and engines per NPU cycle, epoch running or not.
    byte_pj : tuple of (str, float)
        Per byte moved, by pool.
    """

    mac_pj: tuple[tuple[str, float], ...] = ()
    op_pj: float | None = None
    active_pj_per_cycle: float | None = None
    idle_pj_per_cycle: float | None = None
    byte_pj: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Npu:
    """A neural processing unit.

    Parameters
    ----------
    family : str
        "neural-art", ...
    clock : str
        Its clock; every `npu_cycles` is of it.
    frequency_hz : float
        Of that clock.
    engines : int
        Stream engines.
    engine_buffer_bytes : int
        What one engine holds ahead of, or behind, the units.
    engine_bytes_per_cycle : float
        What one engine passes between memory and units in a cycle.
    strided_read_bytes_per_cycle : float or None
        What one passes where it reads runs apart from one another; None: as any.
    engine_outstanding : int
        Read bursts one engine has in flight: they share the pool's latency.
    weight_bytes_per_cycle : float
        What a stream of weights passes to the convolution units in a cycle.
    weight_ahead_bytes : int
        Weights a convolution holds before its first output, at most.
    start_cycles : int
        From the host's start to the first request, and from the last beat to the host seeing it.
    sums_directions : bool
        Whether the compiler's rule adds the reads and writes of a pool.
    epoch_controller : bool
        Whether epochs follow one another without the host between them.
    controller_engine_cycles : float
        NPU cycles the controller takes to set up one engine.
    """

    name: str
    family: str
    clock: str
    frequency_hz: float
    units: tuple[UnitKind, ...]
    engines: int
    engine_buffer_bytes: int
    engine_bytes_per_cycle: float = 2.0
    strided_read_bytes_per_cycle: float | None = None
    engine_outstanding: int = 8
    weight_bytes_per_cycle: float = 1.0
    weight_ahead_bytes: int = 0
    interfaces: tuple[Interface, ...]
    pools: tuple[Pool, ...]
    cache: NpuCache | None = None
    start_cycles: int = 0
    hand_over: HandOver
    energy: NpuEnergy = NpuEnergy()
    sums_directions: bool = False
    epoch_controller: bool = False
    controller_engine_cycles: float = 0.0

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
