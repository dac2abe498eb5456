"""From a validated board file to a `Board`: clocks resolved, wait states looked up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

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
    Power,
)
from hwmodels.board.leaf import PLAIN, Leaf
from hwmodels.board.memory import Sdram, SerialMemory
from hwmodels.board.npu_assembly import assemble_npu
from hwmodels.board.rules import (
    clock_of,
    demanded_wait_states,
    frequency_of,
    line_bytes_of,
    main_core_clock,
)
from hwmodels.board.schema import BoardSection, Section

ARRAY_ROLES = ("flash", "external_flash", "rom")
"""Roles read in lines, whose wait states are met once a line."""


def assemble(section: BoardSection) -> Board:
    """Return the machine a board file describes.

    Parameters
    ----------
    section : BoardSection
        Validated, with every rule of `board_rules` kept.

    Returns
    -------
    Board
        With every clock in Hz, wait states at the deployed clock and voltage scale, and the
        power figures of that scale.
    """
    header = section.board
    return Board(
        name=header.name, soc=header.soc, core_family=header.core_family, aliases=header.aliases,
        description=header.description, price_usd=_value(header.price_usd),
        clocks=_clocks(section),
        cores=tuple(Core(name=name, isa=core.isa, model=core.model, clock=core.clock,
                         fpu=core.fpu, icache=core.icache, dcache=core.dcache,
                         data_caches=core.data_caches)
                    for name, core in section.cores.items()),
        caches=_caches(section), memories=_memories(section),
        buses=tuple(Bus(name=name, clock=bus.clock, width_bytes=bus.width_bytes.value,
                        arbitration=bus.arbitration, masters=bus.masters)
                    for name, bus in section.buses.items()),
        dma=tuple(Dma(name=name, bus=dma.bus, clock=dma.clock,
                      setup_cycles=dma.setup_cycles.value, channels=_value(dma.channels, 1))
                  for name, dma in section.dma.items()),
        npu=assemble_npu(section),
        power=_power(section), prices=_prices(section),
        placement=tuple((use, getattr(section.placement, use))
                        for use in ("weights", "arena", "code")),
        counters=_counters(section), virtual=tuple(section.virtual.items()),
        facts=tuple(_facts(section, section.sources)),
        document=json.dumps(to_plain(section), separators=(",", ":")),
    )


def to_plain(node: object) -> Any:
    """Return a section as plain dictionaries and lists, as its file could be written."""
    if isinstance(node, Leaf):
        return node.plain()
    if isinstance(node, Section):
        fields = type(node).model_fields
        return {field.alias or name: to_plain(getattr(node, name))
                for name, field in fields.items() if getattr(node, name) is not None}
    if isinstance(node, dict):
        return {key: to_plain(value) for key, value in node.items()}
    return list(node) if isinstance(node, tuple) else node


def _facts(node: object, sources: Mapping[str, str], path: str = "") -> Iterator[Fact]:
    if isinstance(node, Leaf):
        if node.source != PLAIN:
            yield Fact(path=path, value=node.value, kind=node.kind, source=sources[node.source],
                       rel_sd=node.rel_sd)
        return
    children: Mapping[str, object] = {}
    if isinstance(node, Section):
        children = {name: getattr(node, name) for name in type(node).model_fields}
    elif isinstance(node, dict):
        children = node
    for name, child in children.items():
        yield from _facts(child, sources, f"{path}.{name}" if path else name)


def _value(leaf: Leaf | None, default: Any = None) -> Any:
    return default if leaf is None else leaf.value


def _clocks(section: BoardSection) -> tuple[Clock, ...]:
    scale = section.supply.voltage_scale
    return tuple(Clock(name=name, frequency_hz=frequency_of(section, name),
                       max_hz=_value(clock.max_hz_by_scale.get(scale)))
                 for name, clock in section.clocks.items())


def _caches(section: BoardSection) -> tuple[Cache, ...]:
    caches = []
    for name, cache in section.caches.items():
        line_bytes = line_bytes_of(section, cache)
        assert line_bytes is not None  # held by the rules
        caches.append(Cache(
            name=name, size_bytes=cache.size_bytes.value, line_bytes=line_bytes,
            ways=_value(cache.ways, cache.size_bytes.value // line_bytes),
            replacement=_value(cache.replacement, "lru"), write=cache.write,
            allocate=cache.allocate, serves=cache.serves,
            hit_cycles=_value(cache.hit_cycles, 0), enabled=cache.enabled,
            critical_word_first=cache.critical_word_first,
            streaming_lines=_value(cache.streaming_lines, 0), below=cache.below,
        ))
    return tuple(caches)


def _memories(section: BoardSection) -> tuple[Memory, ...]:
    served = {name for cache in section.caches.values() for name in cache.serves}
    memories = []
    for name, memory in section.memories.items():
        clock = clock_of(section, memory)
        width = section.buses[memory.bus].width_bytes.value if memory.bus else 4
        latency_cycles = 0.0
        if memory.latency is not None:
            ratio = (frequency_of(section, clock)
                     / frequency_of(section, memory.latency.clock or clock))
            latency_cycles = (memory.latency.cycles.value - 1) * ratio
        wait_states = _value(memory.wait_states, demanded_wait_states(section, memory))
        if memory.role not in ARRAY_ROLES:
            # Not an array behind a buffer: every access pays, so it is latency.
            latency_cycles, wait_states = latency_cycles + wait_states, 0
        memories.append(Memory(
            name=name, role=memory.role, address=memory.address.value,
            size_bytes=memory.size_bytes.value,
            cacheable=name in served if memory.cacheable is None else memory.cacheable,
            bus=memory.bus, clock=clock, latency_cycles=latency_cycles,
            wait_states=wait_states,
            read_bytes=_value(memory.read_bytes, width), line_buffer=memory.line_buffer,
            prefetch=memory.prefetch, bytes_per_cycle=_value(memory.bytes_per_cycle),
            banks=_value(memory.banks, 1),
            interleave_bytes=_value(memory.interleave_bytes),
            serial=_timings(memory.serial, SerialMemory),
            sdram=_timings(memory.sdram, Sdram),
            read_charge_pc=_value(memory.read_charge_pc),
        ))
    return tuple(memories)


def _timings(section: Section | None, noun: type[Any]) -> Any:
    """Return the timings of a kind of memory, the noun's own defaults where a key is absent."""
    if section is None:
        return None
    return noun(**{key: leaf.value if isinstance(leaf, Leaf) else leaf
                   for key in type(section).model_fields
                   if (leaf := getattr(section, key)) is not None})


def _power(section: BoardSection) -> Power:
    supply, power = section.supply, section.power
    scale = supply.voltage_scale
    reference_v = float(_value(power.reference_voltage_v, supply.voltage_v.value))
    table = _value(supply.efficiency_by_v)
    return Power(
        voltage_v=float(supply.voltage_v.value), regulator=supply.regulator,
        voltage_scale=scale, core_voltage_v=_value(supply.core_voltage_v.get(scale)),
        efficiency=_interpolate(table, float(supply.voltage_v.value)),
        reference_voltage_v=reference_v, reference_regulator=power.reference_regulator,
        reference_efficiency=_interpolate(table, reference_v),
        leakage_ma=_value(power.leakage_ma.get(scale)),
        clock_tree_ma_per_mhz=_value(power.clock_tree_ma_per_mhz.get(scale)),
        activity_ma_per_mhz=_value(power.activity_ma_per_mhz.get(scale)),
        reference_ipc=_value(power.reference_ipc), stall_share=_value(power.stall_share),
        sleep_ma=_value(power.sleep_ma),
    )


def _interpolate(table: list[list[float]] | None, at: float) -> float | None:
    """Return the efficiency at a supply voltage, linear between points and flat outside them."""
    if table is None:
        return None
    points = sorted((x, y) for x, y in table)
    below = [point for point in points if point[0] <= at] or points[:1]
    above = [point for point in points if point[0] >= at] or points[-1:]
    (x0, y0), (x1, y1) = below[-1], above[0]
    return y0 if x1 == x0 else y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def _prices(section: BoardSection) -> tuple[EventPrice, ...]:
    prices = []
    for key, price in section.prices.items():
        event, _, place = key.partition("@")
        cycles = _value(price.cycles)
        prices.append(EventPrice(
            event=event, place=place, cycles=None if cycles == "derived" else cycles,
            clock=price.clock or main_core_clock(section), pj=_value(price.pj),
        ))
    return tuple(prices)


def _counters(section: BoardSection) -> Counters | None:
    counters = section.counters
    if counters is None:
        return None
    return Counters(
        cycle_counter=counters.cycle_counter, wrapping_counters=counters.wrapping_counters,
        pmu_counters=_value(counters.pmu_counters, 0), cache_monitors=counters.cache_monitors,
        levels=tuple((level, getattr(counters.levels, level))
                     for level in ("l4", "l3", "l2", "l1")),
        source=section.sources[counters.source],
    )
