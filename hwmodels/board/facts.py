"""The facts of a machine: cores, caches, memories, buses, power, each number with its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hwmodels.errors import BoardError, did_you_mean
from hwmodels.npu.machine import Npu

if TYPE_CHECKING:
    from hwmodels.board.memory import Sdram, SerialMemory

KINDS = ("datasheet", "measured", "fitted", "derived", "assumed")
"""Where a number comes from."""

MEMORY_ROLES = ("tcm", "sram", "flash", "external_ram", "external_flash", "npu_ram", "rom")
"""What `--weights` and `--arena` choose by."""

REPLACEMENTS = ("lru", "plru", "round_robin", "global_round_robin", "fifo", "lfsr")
"""Replacement policies the cache model knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One number of a board file with where it comes from.

    Parameters
    ----------
    path : str
        Dotted path in the board file, the path of a what-if.
    value : object
        As the file gives it; None is "not known".
    kind : str
        One of `KINDS`.
    source : str
        The full text the file's `sources` table gives for it.
    rel_sd : float or None
        Relative standard deviation, where one is stated.
    """

    path: str
    value: object
    kind: str
    source: str
    rel_sd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock domain; every cycle count names one."""

    name: str
    frequency_hz: float
    max_hz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A processor core and the caches it looks through.

    Parameters
    ----------
    isa : str
        "armv6-m", "armv7-m", "armv7e-m", "armv8-m", "armv8-m-dsp", "armv8.1-m-mve", "rv32imac",
        "x86-64".
    model : str
        Name of a timing table in `hwmodels/cores`: "cortex-m4", ...
    clock : str
        Clock it runs on.
    fpu : str or None
        "single", "double" or None (float in software).
    icache, dcache : str or None
        Names of the board's caches; the same name twice is a unified cache.
    data_caches : tuple of str
        Further caches loads and stores look through, each for the memories it serves.
    """

    name: str
    isa: str
    model: str
    clock: str
    fpu: str | None = None
    icache: str | None = None
    dcache: str | None = None
    data_caches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A set-associative cache.

    Parameters
    ----------
    replacement : str
        One of `REPLACEMENTS`.
    write : str
        "back" or "through".
    allocate : str
        "read" or "read_write".
    serves : tuple of str
        Memories whose accesses look it up; empty: every memory marked cacheable.
    hit_cycles : int
        Extra core cycles of a hit.
    enabled : bool
        A cache switched off lets every access through.
    critical_word_first : bool
        The word asked for comes first, and the core goes on while the rest of the line follows.
    streaming_lines : int
        Whole lines in a row written faster than they are filled, after which stores that miss no
        longer allocate; 0: stores always do what `allocate` says.
    below : str or None
        Cache that its misses look up, for the memories that one serves.
    """

    name: str
    size_bytes: int
    line_bytes: int
    ways: int
    replacement: str = "lru"
    write: str = "back"
    allocate: str = "read_write"
    serves: tuple[str, ...] = ()
    hit_cycles: int = 0
    enabled: bool = True
    critical_word_first: bool = False
    streaming_lines: int = 0
    below: str | None = None

    @property
    def sets(self) -> int:
        """Number of sets."""
        return self.size_bytes // (self.line_bytes * self.ways)

    def may_hold(self, memory: Memory) -> bool:
        """Whether lines of a memory may be in it."""
        return memory.name in self.serves if self.serves else memory.cacheable


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory as a load or store meets it.

    Parameters
    ----------
    role : str
        One of `MEMORY_ROLES`.
    address : int
        First byte.
    size_bytes : int
        Capacity.
    cacheable : bool
        Whether a cache that serves it may hold its lines.
    bus : str or None
        Bus it hangs on; None: tightly coupled.
    clock : str
        Clock of the latency and wait states.
    latency_cycles : float
        Cycles of `clock` from request to first data beyond a one-cycle access, wait states apart.
    wait_states : int
        Extra cycles of one array read at the deployed clock and voltage scale.
    read_bytes : int
        Bytes one array read delivers; reads inside the latched line cost no wait states when
        `line_buffer` is set.
    line_buffer : bool
        Whether the last `read_bytes` line read is latched.
    prefetch : bool
        Whether the next line is fetched while the latched one is consumed.
    bytes_per_cycle : float or None
        Sustained bandwidth towards the bus, in bytes per cycle of `clock`; None: the bus width.
    banks : int
        Banks that serve two masters at once.
    interleave_bytes : int or None
        Consecutive bytes of a bank before the next begins; None: each bank is one piece.
    serial : SerialMemory or None
        Phases of an access, where the memory is behind a serial interface; they are part of
        `latency_cycles` and `bytes_per_cycle`.
    sdram : Sdram or None
        Timings of rows and banks, where the memory is one; likewise.
    read_charge_pc : float or None
        Charge of one array read, as a current of the board's tables, in picocoulomb; None: not
        known apart from the core's activity.
    """

    name: str
    role: str
    address: int
    size_bytes: int
    cacheable: bool = False
    bus: str | None = None
    clock: str = "cpu"
    latency_cycles: float = 0.0
    wait_states: int = 0
    read_bytes: int = 4
    line_buffer: bool = False
    prefetch: bool = False
    bytes_per_cycle: float | None = None
    banks: int = 1
    interleave_bytes: int | None = None
    serial: SerialMemory | None = None
    sdram: Sdram | None = None
    read_charge_pc: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bus:
    """A bus: its clock, width, arbitration and masters."""

    name: str
    clock: str
    width_bytes: int
    arbitration: str = "round_robin"
    masters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dma:
    """A DMA controller."""

    name: str
    bus: str
    clock: str
    setup_cycles: int
    channels: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Supply and currents; None is not known, and energy is then not known either.

    Parameters
    ----------
    voltage_v : float
        At the rail the energy is counted at.
    regulator : str
        "ldo", "smps" or "none" (core supplied directly).
    voltage_scale : str
        Range or scale in force, a key of the board's tables.
    core_voltage_v : float or None
        Core voltage at that scale.
    efficiency : float or None
        Of the SMPS, 0 to 1.
    reference_voltage_v : float
        Rail voltage the current figures below were taken at.
    reference_regulator : str or None
        Regulator they were taken with; None: `regulator`.
    reference_efficiency : float or None
        Of the SMPS at the reference voltage, 0 to 1.
    leakage_ma : float or None
        Static current at the reference rail.
    clock_tree_ma_per_mhz : float or None
        Current per megahertz while the core waits (sleep with clocks on).
    activity_ma_per_mhz : float or None
        What running code with caches on adds to that, at `reference_ipc`.
    reference_ipc : float or None
        Instructions per cycle of the code behind the run current.
    stall_share : float or None
        Charge of a cycle the core waits for memory, above the clock tree, as a share of the
        mean activity charge per cycle of that code.
    sleep_ma : float or None
        Current between inferences.
    """

    voltage_v: float
    regulator: str = "ldo"
    voltage_scale: str = "default"
    core_voltage_v: float | None = None
    efficiency: float | None = None
    reference_voltage_v: float = 3.0
    reference_regulator: str | None = None
    reference_efficiency: float | None = None
    leakage_ma: float | None = None
    clock_tree_ma_per_mhz: float | None = None
    activity_ma_per_mhz: float | None = None
    reference_ipc: float | None = None
    stall_share: float | None = None
    sleep_ma: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPrice:
    """A price the board file states for an event, overriding what would be derived."""

    event: str
    place: str
    cycles: float | None
    clock: str
    pj: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the silicon itself counts, and what that leaves of the four levels of metrics.

    Parameters
    ----------
    cycle_counter : str or None
        Name and width of the free-running cycle counter.
    wrapping_counters : tuple of str
        8-bit DWT counters, which wrap every 256 events.
    pmu_counters : int
        Event counters of an Armv8.1-M PMU that can run at once; 0: no PMU.
    cache_monitors : tuple of str
        Hit and miss monitors beside the core.
    levels : tuple of (str, str)
        "l4" to "l1" with what can be measured there.
    source : str
        Full text.
    """

    cycle_counter: str | None = None
    wrapping_counters: tuple[str, ...] = ()
    pmu_counters: int = 0
    cache_monitors: tuple[str, ...] = ()
    levels: tuple[tuple[str, str], ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A machine: everything a price can be derived from, and the facts behind it.

    Parameters
    ----------
    npu : Npu or None
        The accelerator, where there is one.
    placement : tuple of (str, str)
        Default memory for "weights", "arena" and "code".
    counters : Counters or None
        What can be measured on it.
    virtual : tuple of (str, str)
        Machine name of this board in an emulator ("qemu", "unicorn").
    facts : tuple of Fact
        Every number of the file with its source.
    document : str
        The board file as canonical JSON: what a what-if edits.
    """

    name: str
    soc: str
    core_family: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    price_usd: float | None = None
    clocks: tuple[Clock, ...]
    cores: tuple[Core, ...]
    caches: tuple[Cache, ...] = ()
    memories: tuple[Memory, ...]
    buses: tuple[Bus, ...] = ()
    dma: tuple[Dma, ...] = ()
    npu: Npu | None = None
    power: Power
    prices: tuple[EventPrice, ...] = ()
    placement: tuple[tuple[str, str], ...]
    counters: Counters | None = None
    virtual: tuple[tuple[str, str], ...] = ()
    facts: tuple[Fact, ...] = field(default=(), repr=False)
    document: str = field(default="{}", repr=False)

    @property
    def core(self) -> Core:
        """The core that runs the network: "main", or the first."""
        return next((core for core in self.cores if core.name == "main"), self.cores[0])

    def clock(self, name: str) -> Clock:
        """Return the clock of that name."""
        return _find(self.clocks, name, f"{self.name}: clock")

    def memory(self, name: str) -> Memory:
        """Return the memory of that name."""
        return _find(self.memories, name, f"{self.name}: memory")

    def cache(self, name: str | None) -> Cache | None:
        """Return the cache of that name, None for None."""
        return None if name is None else _find(self.caches, name, f"{self.name}: cache")

    def bus(self, name: str) -> Bus:
        """Return the bus of that name."""
        return _find(self.buses, name, f"{self.name}: bus")

    def dma_controller(self, name: str) -> Dma:
        """Return the DMA controller of that name."""
        return _find(self.dma, name, f"{self.name}: DMA controller")


def _find(parts, name, what):  # type: ignore[no-untyped-def]
    for part in parts:
        if part.name == name:
            return part
    raise BoardError(f"{what} {name!r} does not exist; "
                     + did_you_mean(name, [part.name for part in parts]))
