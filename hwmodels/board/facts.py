"""The facts of a machine: cores, caches, memories, buses, power.

A field with a `Key` is a key of the board file, declared here once; the others are worked out from
keys when a file is read (`assembly`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, TypeVar

from hwmodels.board.declaration import (
    ADDRESS,
    ADDRESSES,
    CHARGE,
    CORE,
    COUNT,
    ENERGY,
    FREQUENCIES,
    FREQUENCY,
    ISA,
    KINDS,
    RATE,
    SIZE,
    SIZES,
    SWITCH,
    TEXT,
    WHOLE_CYCLES,
    ByScale,
    Choice,
    Key,
    Part,
    Quantity,
    Reference,
    Several,
)
from hwmodels.board.external import Sdram, SerialMemory
from hwmodels.board.npu import Npu
from hwmodels.board.policies import GROUP, POLICIES
from hwmodels.board.power import Idle, Power, SleepState
from hwmodels.errors import BoardError, did_you_mean
from hwmodels.frozen import NamedTexts, frozen

Span = tuple[int, int]
"""First address, and the one behind the last."""

Spans = tuple[Span, ...]

MEMORY_ROLES = ("tcm", "sram", "flash", "external_ram", "external_flash", "npu_ram", "rom")
"""What `--weights` and `--arena` choose by."""

FLASH_ROLES = ("flash", "external_flash", "rom")
"""Memories that are not written while a network runs."""


@frozen
class Fact:
    """One number of a board file with where it comes from.

    Parameters
    ----------
    path
        Dotted path in the board file, the path of a what-if.
    value
        As the file gives it; None is "not known".
    kind
        One of `KINDS`.
    source
        The full text the file's `sources` table gives for it.
    rel_sd
        Relative standard deviation, where one is stated.
    """

    path: str
    value: object
    kind: str
    source: str
    rel_sd: float | None = None


@frozen
class Clock:
    """A clock domain, which cycle counts name; its frequency may be derived from another's."""

    name: str
    frequency_hz: Annotated[float, Key(
        FREQUENCY, "Of the clock; absent where it is derived.", required=False)]
    max_hz: Annotated[float | None, Key(
        ByScale(FREQUENCY), "The highest the part allows.", name="max_hz_by_scale")] = None
    settings_hz: Annotated[tuple[float, ...], Key(
        FREQUENCIES, "Those its set-up can choose; absent: any up to the highest.")] = ()
    idle_hz: Annotated[float | None, Key(
        FREQUENCY, "At which `power.idle_mw` was measured; absent: it does not follow it.")] = None


@frozen
class Core:
    """A processor core and the caches it looks through."""

    name: str
    isa: Annotated[str, Key(ISA, "Instruction set; rv32imc also of a core that has atomics "
                                 "(rv32imac means the same): no kernel uses them.")]
    model: Annotated[str, Key(CORE, "A timing table of `hwmodels/cores`: cortex-m4, ...")]
    clock: Annotated[str, Key(Reference("clock"), "What it runs on.")]
    fpu: Annotated[str | None, Key(
        Choice(("single", "double")), "Absent: float in software.")] = None
    soft_float: Annotated[str, Key(
        Choice(("libgcc", "rp2040-rom")), "Whose routines compute in float where there is no FPU: "
        "the compiler's (newlib calls them, too), or the RP2040's boot ROM, as its SDK builds."
        )] = "libgcc"
    icache: Annotated[str | None, Key(
        Reference("cache"), "Of instructions; the same as `dcache` for a unified cache.")] = None
    dcache: Annotated[str | None, Key(Reference("cache"), "Of loads and stores.")] = None
    data_caches: Annotated[tuple[str, ...], Key(
        Several(Reference("cache")),
        "Further caches of loads and stores, each for the memories it serves.")] = ()
    priority_bits: Annotated[int | None, Key(
        Quantity(low=1, high=8, whole=True), "Bits an interrupt's priority has, of "
        "a Cortex-M; absent: two of an Armv6-M core, four of others (assumed). Programs read them "
        "back.")] = None


@frozen
class Cache:
    """A set-associative cache; an accelerator in front of a flash is a cache that serves it."""

    name: str
    size_bytes: Annotated[int, Key(
        SIZE, "What it holds; with a `rel_sd` of 1 or more there may be none.")]
    line_bytes: Annotated[int, Key(
        SIZE, "Of a line; absent: one array read of the memory it serves.", required=False)]
    ways: Annotated[int, Key(COUNT, "Absent: fully associative.", required=False)]
    replacement: Annotated[str, Key(
        Quantity(numeric=False, words=tuple(POLICIES), group=GROUP),
        "Which line of a full set leaves: "
        + "; ".join(f"{policy.name}, {policy.doc}" for policy in POLICIES.values()) + ".")] = "lru"
    write: Annotated[str, Key(
        Choice(("back", "through")), "When what is stored reaches memory.")] = "back"
    allocate: Annotated[str, Key(
        Choice(("read", "read_write")), "Which misses fill a line.")] = "read_write"
    serves: Annotated[tuple[str, ...], Key(
        Several(Reference("memory")),
        "Memories whose accesses look it up; absent: every memory marked cacheable.")] = ()
    hit_cycles: Annotated[int, Key(WHOLE_CYCLES, "Extra core cycles of a hit.")] = 0
    enabled: Annotated[bool, Key(SWITCH, "A cache switched off lets every access through.")] = True
    settings_bytes: Annotated[tuple[int, ...], Key(
        SIZES, "Sizes its set-up can choose, of one that is the only way to what it serves and "
               "so never off; absent: any, or off.")] = ()
    critical_word_first: Annotated[bool, Key(
        SWITCH, "The word asked for comes first, and the core goes on while the rest of the line "
                "follows.")] = False
    streaming_lines: Annotated[int, Key(
        WHOLE_CYCLES, "Whole lines in a row written faster than they are filled, after which "
                      "stores that miss no longer allocate; 0: stores always do what `allocate` "
                      "says.")] = 0
    below: Annotated[str | None, Key(
        Reference("cache"),
        "Cache that its misses look up, for the memories that one serves.")] = None

    @property
    def sets(self) -> int:
        """Number of sets."""
        return self.size_bytes // (self.line_bytes * self.ways)

    def may_hold(self, memory: Memory) -> bool:
        """Whether lines of a memory may be in it."""
        return memory.name in self.serves if self.serves else memory.cacheable


@frozen
class Memory:
    """A memory as a load or store meets it.

    Parameters
    ----------
    latency_cycles
        Cycles of `clock` from request to first data beyond a one-cycle access, wait states apart.
    line_latency_cycles
        As much of it as a line shows that is filled into a cache; None: all.
    """

    name: str
    role: Annotated[str, Key(Choice(MEMORY_ROLES), "What --weights and --arena choose by.")]
    address: Annotated[int, Key(ADDRESS, "First byte.")]
    size_bytes: Annotated[int, Key(SIZE, "Capacity.")]
    windows: Annotated[tuple[int, ...], Key(
        ADDRESSES, "First bytes of further windows on it, each as large: aliases, or what an MMU "
                   "maps alike for code and data.")] = ()
    cacheable: Annotated[bool, Key(
        SWITCH, "Whether a cache that serves it may hold its lines; absent: whether one names it.",
        required=False)] = False
    bus: Annotated[str | None, Key(
        Reference("bus"), "The bus it is on; absent: tightly coupled.")] = None
    clock: Annotated[str, Key(
        Reference("clock"), "Of the latency and wait states; absent: the bus's, else the core's.",
        required=False)] = "cpu"
    latency_cycles: float = 0.0
    line_latency_cycles: float | None = None
    wait_states: Annotated[int, Key(
        WHOLE_CYCLES, "Extra cycles of one array read at the deployed clock and voltage scale; "
                      "absent: as few as `wait_states_max_hz` allows.")] = 0
    read_bytes: Annotated[int, Key(
        SIZE, "Bytes one array read delivers; absent: the bus's width.")] = 4
    loaded: Annotated[bool, Key(
        SWITCH, "Whether a simulator's loader or another core fills it before the program starts: "
                "what is in it is kept in no flash.")] = False
    line_buffer: Annotated[bool, Key(
        SWITCH, "Whether the last `read_bytes` line read is latched: reads inside it cost no wait "
                "states.")] = False
    prefetch: Annotated[bool, Key(
        SWITCH, "Whether the next line is fetched while the latched one is consumed.")] = False
    bytes_per_cycle: Annotated[float | None, Key(
        RATE, "Sustained bandwidth towards the bus, per cycle of `clock`; absent: the bus's "
              "width.")] = None
    banks: Annotated[int, Key(COUNT, "Banks that serve two masters at once.")] = 1
    interleave_bytes: Annotated[int | None, Key(
        SIZE, "Consecutive bytes of a bank before the next begins; absent: each bank is one "
              "piece.")] = None
    serial: Annotated[SerialMemory | None, Key(
        Part(SerialMemory), "Phases of an access behind a serial interface; they are part of "
                            "`latency` and `bytes_per_cycle`.")] = None
    sdram: Annotated[Sdram | None, Key(
        Part(Sdram), "Timings of rows and banks; `latency` is that of an open row.")] = None
    read_charge_pc: Annotated[float | None, Key(
        CHARGE, "Charge of one array read, as a current of the board's tables; absent: not known "
                "apart from the core's activity.")] = None

    @property
    def spans(self) -> Spans:
        """First address, and the one behind the last, of it and of each further window."""
        return tuple((at, at + self.size_bytes) for at in (self.address, *self.windows))


@frozen
class Bus:
    """A bus: its clock, width, arbitration and masters."""

    name: str
    clock: Annotated[str, Key(Reference("clock"), "What it runs on.")]
    width_bytes: Annotated[int, Key(SIZE, "Of one beat.")]
    arbitration: Annotated[str, Key(
        Choice(("round_robin", "fixed")), "Which master is next.")] = "round_robin"
    masters: Annotated[tuple[str, ...], Key(
        Several(Reference("master")), "Cores and DMA controllers on it.")] = ()


@frozen
class Dma:
    """A DMA controller."""

    name: str
    bus: Annotated[str, Key(Reference("bus"), "What it moves data over.")]
    clock: Annotated[str, Key(Reference("clock"), "Of `setup_cycles`.")]
    setup_cycles: Annotated[int, Key(WHOLE_CYCLES, "To start a transfer.")]
    channels: Annotated[int, Key(COUNT, "That run side by side.")] = 1


@frozen
class EventPrice:
    """A price the board file states for an event, overriding what would be derived."""

    event: str
    place: str
    cycles: Annotated[float | None, Key(
        Quantity(low=0, high=1e6, words=("derived",)), "Of one event.", required=False)]
    clock: Annotated[str, Key(
        Reference("clock"), "Of `cycles`; absent: the main core's.", required=False)]
    pj: Annotated[float | None, Key(ENERGY, "Of one event, at the rail.", required=False)]


class LevelKeys:
    """What can be known of each level of metrics on this silicon."""

    l4: Annotated[str, Key(TEXT, "Latency, energy and memory of a network.")]
    l3: Annotated[str, Key(TEXT, "Clocks and power states, DMA and bus.")]
    l2: Annotated[str, Key(TEXT, "Instructions per cycle, stalls, caches, branches.")]
    l1: Annotated[str, Key(TEXT, "Power and temperature.")]


@frozen
class Counters:
    """What the silicon itself counts, and what that leaves of the four levels of metrics."""

    cycle_counter: Annotated[str | None, Key(
        TEXT, "Name and width of the free-running cycle counter.")] = None
    wrapping_counters: Annotated[tuple[str, ...], Key(
        Several(TEXT), "8-bit DWT counters, which wrap every 256 events.")] = ()
    pmu_counters: Annotated[int, Key(
        Quantity(low=0, high=64, whole=True),
        "Event counters of an Armv8.1-M PMU that can run at once; 0: no PMU.")] = 0
    cache_monitors: Annotated[tuple[str, ...], Key(
        Several(TEXT), "Hit and miss monitors beside the core.")] = ()
    levels: Annotated[NamedTexts, Key(
        Part(LevelKeys), "What can be known of each level of metrics.", required=True)] = ()
    source: Annotated[str, Key(Reference("source"), "Where that is from.", required=True)] = ""


@frozen
class Board:
    """A machine: everything a price can be derived from, and the facts behind it.

    Parameters
    ----------
    npu
        The accelerator, where there is one.
    placement : tuple of (str, str)
        Default memory for "weights", "arena" and "code".
    counters
        What can be measured on it.
    sleep
        What it sleeps in between inferences.
    virtual : tuple of (str, str)
        Machine name of this board in an emulator ("qemu", "unicorn"); "fvp": it is that model.
    facts
        Every number of the file with its source.
    document
        The board file as canonical JSON: what a what-if edits.
    as_shipped
        False of a file that takes a shipped board's name for another chip or core: what was
        measured under that name is of another machine.
    file
        Path it was read from where it was named by its path.
    """

    name: Annotated[str, Key(TEXT, "What the board is called.", section="board")]
    soc: Annotated[str, Key(TEXT, "The chip; its first letters name the maker, whose libraries it "
                            "can run and gets by default (`stm32...`).", section="board")]
    core_family: Annotated[str, Key(CORE, "Of its main core: cortex-m7, ...", section="board")]
    aliases: Annotated[tuple[str, ...], Key(
        Several(TEXT), "Other names it is found by.", section="board")] = ()
    description: Annotated[str, Key(TEXT, "One line.", section="board")] = ""
    price_usd: Annotated[float | None, Key(
        Quantity(low=0, high=1e6, null=True), "Of the board.", section="board")] = None
    part_price_usd: Annotated[float | None, Key(
        Quantity(low=0, high=1e6, null=True), "Of its chip alone.", section="board")] = None
    clocks: tuple[Clock, ...]
    cores: tuple[Core, ...]
    caches: tuple[Cache, ...] = ()
    memories: tuple[Memory, ...]
    buses: tuple[Bus, ...] = ()
    dma: tuple[Dma, ...] = ()
    npu: Npu | None = None
    power: Power
    prices: tuple[EventPrice, ...] = ()
    placement: NamedTexts
    counters: Counters | None = None
    sleep: tuple[SleepState, ...] = ()
    virtual: NamedTexts = ()
    facts: tuple[Fact, ...] = field(default=(), repr=False)
    document: str = field(default="{}", repr=False)
    as_shipped: bool = True
    file: str = field(default="", compare=False, repr=False)

    @property
    def measured_name(self) -> str:
        """Name under which published measurements are of it; "" of none."""
        return self.name if self.as_shipped else ""

    @property
    def core(self) -> Core:
        """The core that runs the network: "main", or the first."""
        return next((core for core in self.cores if core.name == "main"), self.cores[0])

    @property
    def accelerator(self) -> Npu:
        """The NPU of a board that has one."""
        assert self.npu is not None, "asked of a board without an accelerator"
        return self.npu

    @property
    def hertz(self) -> dict[str, float]:
        """Frequency of each clock."""
        return {clock.name: clock.frequency_hz for clock in self.clocks}

    @property
    def highest_hz(self) -> dict[str, float]:
        """Highest each clock may be, at any voltage; those not known omitted."""
        found: dict[str, float] = {}
        for fact in self.facts:
            parts = fact.path.split(".")
            if parts[0] == "clocks" and "max_hz_by_scale" in parts and isinstance(
                    fact.value, int | float):
                found[parts[1]] = max(found.get(parts[1], 0.0), fact.value)
        return found

    def idle(self, core_hz: float | None = None) -> Idle | None:
        """Return what the board draws idle; None where its energies hold that.

        Parameters
        ----------
        core_hz
            Of the core's clock, where not the board's.

        Notes
        -----
        P = P_stated (static share + sum of shares f / f_stated): nobody measured the shares, so
        its ends are all static and all of the clock that moved furthest. The core voltage is that
        of the measurement.
        """
        stated, core = self.power.idle_mw, self.core.clock
        if stated is None:
            return None
        ratios = [1.0, *((core_hz if core_hz and clock.name == core else clock.frequency_hz)
                         / clock.idle_hz for clock in self.clocks if clock.idle_hz)]
        return Idle(low_mw=stated * min(ratios), high_mw=stated * max(ratios))

    @property
    def assumed_current_sd(self) -> float:
        """Relative deviation of the run current where its class's was assumed; 0 of a source's."""
        return self._current_sd("assumed")

    @property
    def stated_current_sd(self) -> float:
        """Relative deviation the file states of its run current; 0 of a figure without one."""
        return self._current_sd(*KINDS)

    def _current_sd(self, *kinds: str) -> float:
        path = f"power.activity_ma_per_mhz.{self.power.voltage_scale}"
        return next((fact.rel_sd or 0.0 for fact in self.facts
                     if fact.path == path and fact.kind in kinds), 0.0)

    @property
    def core_clock(self) -> Clock:
        """Clock of the main core."""
        return self.clock(self.core.clock)

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


Named = TypeVar("Named", Clock, Cache, Memory, Bus, Dma)


def _find(parts: Sequence[Named], name: str, what: str) -> Named:
    for part in parts:
        if part.name == name:
            return part
    raise BoardError(f"{what} {name!r} does not exist; "
                     + did_you_mean(name, [part.name for part in parts]))
