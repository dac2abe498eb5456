"""From a validated board file to a `Board`: clocks resolved, wait states looked up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hwmodels.board.declaration import PLAIN, ByScale, Leaf, Part, Quantity, Table, keys_of
from hwmodels.board.facts import (
    Board,
    Bus,
    Cache,
    Clock,
    Core,
    Counters,
    Dma,
    EventPrice,
    Fact,
    Memory,
)
from hwmodels.board.npu import HandOver, Interface, Npu, NpuCache, NpuEnergy, Pool, UnitKind
from hwmodels.board.power import Power, SleepState
from hwmodels.board.rules import (
    clock_of,
    demanded_wait_states,
    frequency_of,
    line_bytes_of,
    main_core_clock,
    name_pools,
)
from hwmodels.board.schema import Section

LOSS_POWER = 1.3
"""Of the supply voltage, to which losses of an SMPS go: STM32U585 datasheet table 44, 160 MHz: the
core takes 13.5 mA at 1.2 V: 2.7, 5.3 and 5.9 mW are lost at 1.8, 3.0 and 3.3 V.
"""

ARRAY_ROLES = ("flash", "external_flash", "rom")
"""Roles read in lines, whose wait states are met once a line."""

EXTERNAL_ROLES = ("external_ram", "external_flash")
"""Roles of memories outside the chip."""

Noun = TypeVar("Noun")

Hertz = Callable[[str], Any]
"""Frequency of a clock by name: a number, or an array of them."""


def assemble(section: Section) -> Board:
    """Return the machine a board file describes.

    Parameters
    ----------
    section
        Validated, with every rule of `board_rules` kept.

    Returns
    -------
    Board
        With every clock in Hz, wait states at the deployed clock and voltage scale, and the
        power figures of that scale.
    """
    scale = section.supply.voltage_scale
    return read(
        Board, section, **follow_hertz(section, partial(frequency_of, section)),
        cores=_each(Core, section.cores), caches=_caches(section),
        buses=_each(Bus, section.buses), dma=_each(Dma, section.dma),
        power=_power(section, scale), prices=_prices(section),
        placement=section.placement.items(), counters=_counters(section),
        sleep=_each(SleepState, section.sleep),
        virtual=tuple(section.virtual.items()), facts=tuple(_facts(section, section.sources)),
        document=json.dumps(to_plain(section), separators=(",", ":")),
    )


def follow_hertz(section: Section, hertz: Hertz) -> dict[str, Any]:
    """Return what of a board follows the frequencies of its clocks.

    Parameters
    ----------
    section
        Validated; wait states are those of its own frequencies.
    hertz
        Frequency of a clock by name: a number, or as many as boards are wanted, shape (n,).

    Returns
    -------
    dict of str to object
        Fields of `Board`; where frequencies are several, numbers in them are of shape (n,).
    """
    return {"clocks": _clocks(section, section.supply.voltage_scale, hertz),
            "memories": _memories(section, section.supply.voltage_scale, hertz),
            "npu": _npu(section, hertz)}


def read(noun: type[Noun], section: Section, scale: str = "", **worked_out: Any) -> Noun:
    """Return a noun with what its section states, its own defaults where that is nothing.

    Parameters
    ----------
    noun
        A dataclass whose keys are declared.
    section
        Its section, or the whole file for a noun whose keys stand in several sections.
    scale
        Voltage scale in force.
    **worked_out
        Fields that are not read as they stand.
    """
    fields = dict(worked_out)
    declaring: type = noun
    for key in keys_of(declaring):
        if key.field in fields:
            continue
        value = getattr(getattr(section, key.section) if key.section else section, key.name)
        match key.kind:
            case ByScale():
                value = value.get(scale)
            case Table(Quantity()) if value is not None:
                value = tuple((name, leaf.value) for name, leaf in value.items()
                              if leaf.value is not None)
            case Part(nouns) if value is not None:
                value = read(nouns[0], value, scale)
        if isinstance(value, Leaf):
            value = tuple(value.value) if isinstance(value.value, list) else value.value
        if value is not None:
            fields[key.field] = value
    return noun(**fields)


def _each(noun: type[Noun], sections: Mapping[str, Section], key: str = "name",
          ) -> tuple[Noun, ...]:
    """Return a noun of each section, which it has its name of."""
    return tuple(read(noun, section, **{key: name}) for name, section in sections.items())


def to_plain(node: object) -> Any:
    """Return a section as plain dictionaries and lists, as its file could be written."""
    if isinstance(node, Leaf):
        return node.plain()
    if isinstance(node, (Section, dict)):
        return {key: to_plain(value) for key, value in node.items()
                if value is not None or isinstance(node, dict)}
    return list(node) if isinstance(node, tuple) else node


def _facts(node: object, sources: Mapping[str, str], path: str = "") -> Iterator[Fact]:
    if isinstance(node, Leaf):
        if node.source != PLAIN:
            yield Fact(path=path, value=node.value, kind=node.kind, source=sources[node.source],
                       rel_sd=node.rel_sd)
        return
    if isinstance(node, (Section, dict)):
        for name, child in node.items():
            yield from _facts(child, sources, f"{path}.{name}" if path else name)


def _value(leaf: Leaf | None, default: Any = None) -> Any:
    return default if leaf is None else leaf.value


def _clocks(section: Section, scale: str, hertz: Hertz) -> tuple[Clock, ...]:
    return tuple(read(Clock, clock, scale, name=name, frequency_hz=hertz(name))
                 for name, clock in section.clocks.items())


def _caches(section: Section) -> tuple[Cache, ...]:
    caches = []
    for name, cache in section.caches.items():
        line_bytes = line_bytes_of(section, cache)
        assert line_bytes is not None  # held by the rules
        lines = cache.size_bytes.value // line_bytes
        caches.append(read(Cache, cache, name=name, line_bytes=line_bytes,
                           ways=_value(cache.ways, lines)))
    return tuple(caches)


def _memories(section: Section, scale: str, hertz: Hertz) -> tuple[Memory, ...]:
    served = {name for cache in section.caches.values() for name in cache.serves}
    memories = []
    for name, memory in section.memories.items():
        clock = clock_of(section, memory)
        latency_cycles, line_cycles = (_latency_cycles(section, memory, clock, hertz, key)
                                       for key in ("cycles", "line_cycles"))
        wait_states = _value(memory.wait_states, demanded_wait_states(section, memory))
        if memory.role not in ARRAY_ROLES:
            # Not an array behind a buffer: every access pays, so it is latency.
            latency_cycles += wait_states
            line_cycles = None if line_cycles is None else line_cycles + wait_states
            wait_states = 0
        memories.append(read(
            Memory, memory, scale, name=name, clock=clock, latency_cycles=latency_cycles,
            line_latency_cycles=line_cycles,
            cacheable=name in served if memory.cacheable is None else memory.cacheable,
            wait_states=wait_states,
            read_bytes=_value(memory.read_bytes, _bus_bytes(section, memory, 4))))
    return tuple(memories)


def _latency_cycles(section: Section, memory: Section, clock: str, hertz: Hertz,
                    key: str = "cycles") -> Any:
    """Return cycles of a clock that an access takes beyond one, or None where none are stated."""
    stated = None if memory.latency is None else getattr(memory.latency, key)
    if stated is None:
        return 0.0 if key == "cycles" else None
    own = memory.latency.clock or clock_of(section, memory)
    ratio = 1.0 if own == clock else hertz(clock) / hertz(own)
    return (stated.value - 1) * ratio


def _bus_bytes(section: Section, memory: Section, without: int) -> int:
    return int(section.buses[memory.bus].width_bytes.value) if memory.bus else without


def _power(section: Section, scale: str) -> Power:
    return read(Power, section, scale, **supplied(section, float(section.supply.voltage_v.value)))


def supplied(section: Section, voltage_v: Any) -> dict[str, Any]:
    """Return what of `Power` follows the supply voltage."""
    reference_v = _value(section.power.reference_voltage_v, voltage_v)
    table = _value(section.supply.efficiency_by_v)
    return {"voltage_v": voltage_v, "reference_voltage_v": reference_v,
            "efficiency": _interpolate(table, voltage_v),
            "reference_efficiency": _interpolate(table, reference_v)}


def _interpolate(table: list[list[float]] | None, at: Any) -> Any:
    """Return the efficiency at a supply voltage, linear between points.

    Outside them, what the converter loses goes with the voltage to the power of `LOSS_POWER`.
    """
    if table is None:
        return None
    volts, shares = np.array(sorted((x, y) for x, y in table)).T
    lost = (1 / np.interp(at, volts, shares) - 1) * (at / np.clip(at, volts[0], volts[-1])
                                                     )**LOSS_POWER
    found = 1 / (1 + lost)
    return found if isinstance(at, np.ndarray) else float(found)


def _prices(section: Section) -> tuple[EventPrice, ...]:
    prices = []
    for key, price in section.prices.items():
        event, _, place = key.partition("@")
        cycles = _value(price.cycles)
        prices.append(read(
            EventPrice, price, event=event, place=place,
            cycles=None if cycles == "derived" else cycles,
            clock=price.clock or main_core_clock(section), pj=_value(price.pj)))
    return tuple(prices)


def _counters(section: Section) -> Counters | None:
    counters = section.counters
    if counters is None:
        return None
    return read(Counters, counters, levels=counters.levels.items(),
                source=section.sources[counters.source])


def _npu(section: Section, hertz: Hertz) -> Npu | None:
    npu = section.npu
    if npu is None:
        return None
    return read(
        Npu, npu, name=section.board.name, frequency_hz=hertz(npu.clock),
        units=_each(UnitKind, npu.units, "kind"), interfaces=_each(Interface, npu.interfaces),
        pools=tuple(_pool(section, name, npu.pools[name], hertz) for name in name_pools(npu)),
        sizes=tuple(dict.fromkeys(config for pool in npu.pools.values()
                                  for config in pool.configs or ())),
        cache=None if npu.cache is None else read(NpuCache, npu.cache),
        hand_over=read(HandOver, npu.hand_over),
        energy=read(NpuEnergy, npu.energy, byte_pj=tuple(
            (name, pool.byte_pj.value) for name, pool in npu.pools.items()
            if pool.byte_pj is not None and pool.byte_pj.value is not None)))


def _pool(section: Section, name: str, pool: Section, hertz: Hertz) -> Pool:
    memory = section.memories[pool.memory]
    clock = pool.clock or clock_of(section, memory)
    clock_ratio = hertz(section.npu.clock) / hertz(clock)
    width = _bus_bytes(section, memory, 8)
    kind = ("external" if memory.role in EXTERNAL_ROLES else
            "flash" if memory.role == "flash" else "ram")
    return read(
        Pool, pool, name=name, clock=clock, clock_ratio=clock_ratio,
        size_bytes=_value(pool.size_bytes, memory.size_bytes.value),
        external=memory.role in (*EXTERNAL_ROLES, "flash"),
        wait_event=f"npu_{kind}_wait", byte_event=f"npu_{kind}_byte",
        bytes_per_cycle=_value(pool.bytes_per_cycle, _value(memory.bytes_per_cycle, width)),
        read_latency_cycles=_value(pool.read_latency_cycles,
                                   _latency_cycles(section, memory, clock, hertz)))
