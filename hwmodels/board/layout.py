"""The sections of a board file, and the keys that a noun of `facts` is worked out from."""

from __future__ import annotations

from typing import Annotated, Any

from hwmodels.board.declaration import (
    EFFICIENCIES,
    ENERGY,
    FREQUENCIES,
    RATE,
    TEXT,
    VOLTAGE,
    VOLTAGES,
    ByScale,
    Choice,
    Key,
    Part,
    Reference,
    Several,
    Table,
)
from hwmodels.board.facts import (
    REGULATORS,
    Board,
    Bus,
    Cache,
    Clock,
    Core,
    Counters,
    Dma,
    EventPrice,
    Memory,
    Power,
)
from hwmodels.board.leaf import Quantity
from hwmodels.board.npu import HandOver, Interface, Npu, NpuCache, NpuEnergy, Pool, UnitKind


class ClockKeys:
    """Of a clock that is derived from another."""

    of: Annotated[Any, Key(Reference("clock"), "Clock it is derived from.")] = None
    divide_by: Annotated[Any, Key(RATE, "That clock over this one.")] = None


class LatencyKeys:
    """A whole access without wait states; 1 is a one-cycle access."""

    cycles: Annotated[Any, Key(Quantity(low=1, high=1e6), "From request to first data.")]
    clock: Annotated[Any, Key(Reference("clock"), "Of the cycles; absent: the memory's.")] = None


class MemoryKeys:
    """Of a memory: its latency, and the part's table of wait states."""

    latency: Annotated[Any, Key(
        Part(LatencyKeys), "A whole access without wait states; absent: one cycle.")] = None
    wait_states_max_hz: Annotated[Any, Key(
        ByScale(FREQUENCIES), "The highest clock with 0, 1, 2, ... wait states.")] = ()
    wait_states_min_supply_v: Annotated[Any, Key(
        VOLTAGE, "Lowest supply the table holds for.")] = None


class SupplyKeys:
    """Of the supply: what the part allows."""

    voltage_range_v: Annotated[Any, Key(VOLTAGES, "[lowest, highest] of the rail.")] = None
    regulators: Annotated[Any, Key(Several(REGULATORS), "Those the part has.")] = ()
    regulators_by_scale: Annotated[Any, Key(
        Table(Several(REGULATORS), "SCALE"), "Those that reach a voltage scale.")] = ()
    efficiency_by_v: Annotated[Any, Key(
        EFFICIENCIES, "Of the SMPS: a list of [supply voltage, efficiency 0 to 1].")] = None


class PoolKeys:
    """Of an NPU's pool: what its energy is worked out from."""

    byte_pj: Annotated[Any, Key(ENERGY, "Per byte moved.")] = None


class NpuKeys:
    """The parts of an NPU."""

    units: Annotated[Any, Key(Table(Part(UnitKind), "KIND"), "Its processing units.")]
    interfaces: Annotated[Any, Key(Table(Part(Interface), "NAME"), "Its ports to the bus.")]
    pools: Annotated[Any, Key(Table(Part(Pool, PoolKeys), "NAME"), "Memories it works in.")]
    cache: Annotated[Any, Key(Part(NpuCache), "Between interfaces and outer memory.")] = None
    hand_over: Annotated[Any, Key(Part(HandOver), "What the host does around an epoch.")]
    energy: Annotated[Any, Key(Part(NpuEnergy), "At the rail.")] = ()


class PlacementKeys:
    """Where things are by default."""

    weights: Annotated[Any, Key(Reference("memory"), "Memory the weights are in.")]
    arena: Annotated[Any, Key(Reference("memory"), "Memory the arena is in.")]
    code: Annotated[Any, Key(Reference("memory"), "Memory the code is in.")]


class BoardFile:
    """A board file."""

    schema: Annotated[Any, Key(Choice((1,)), "Version of the format.")]
    sources: Annotated[Any, Key(Table(TEXT, "SOURCE"), "Full text of each source.")]
    board: Annotated[Any, Key(Part(Board, section="board"), "What it is called.")]
    supply: Annotated[Any, Key(
        Part(Power, SupplyKeys, section="supply"),
        "The rail the energy is counted at, and what makes the core voltage of it.")]
    clocks: Annotated[Any, Key(
        Table(Part(Clock, ClockKeys), "NAME"), "A frequency, or another clock and a divider.")]
    cores: Annotated[Any, Key(Table(Part(Core), "NAME"), Core.__doc__)]
    caches: Annotated[Any, Key(Table(Part(Cache), "NAME"), Cache.__doc__)] = ()
    memories: Annotated[Any, Key(
        Table(Part(Memory, MemoryKeys), "NAME"), "A memory as a load or store meets it.")]
    buses: Annotated[Any, Key(Table(Part(Bus), "NAME"), Bus.__doc__)] = ()
    dma: Annotated[Any, Key(Table(Part(Dma), "NAME"), Dma.__doc__)] = ()
    npu: Annotated[Any, Key(
        Part(Npu, NpuKeys), "An accelerator of stream engines, units and pools.")] = None
    power: Annotated[Any, Key(
        Part(Power, section="power"), "Currents of the supply rail, by voltage scale.")]
    prices: Annotated[Any, Key(
        Table(Part(EventPrice), "EVENT"),
        "EVENT or EVENT@MEMORY: overrides what would be derived.")] = ()
    placement: Annotated[Any, Key(
        Part(PlacementKeys), "Memories the weights, the arena and the code are in by default.")]
    counters: Annotated[Any, Key(Part(Counters), "What the silicon itself counts.")] = None
    virtual: Annotated[Any, Key(
        Table(TEXT, "EMULATOR"), "Its machine name in an emulator: qemu, unicorn.")] = ()


BOARD_FILE = Part(BoardFile)
"""A whole board file."""
