"""Rules a board must keep, as a file or after a what-if: each broken one names its key."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from hwmodels.board.declaration import Leaf, Reference, Several
from hwmodels.board.external import MODE
from hwmodels.board.npu import BURST_BEATS, ROLES, THROUGH
from hwmodels.board.schema import Section
from hwmodels.counts import EVENTS
from hwmodels.errors import did_you_mean

Broken = tuple[str, str]
"""Dotted path and the rule it breaks."""

WRITABLE_ROLES = ("tcm", "sram", "external_ram", "npu_ram")
"""Roles of memory an arena can live in."""


def find_broken(section: Section) -> Broken | None:
    """Return the first rule broken, None when all are kept.

    Parameters
    ----------
    section
        A validated board file.

    Returns
    -------
    tuple of (str, str) or None
        Path in the file, and what the rule is and would accept.

    Notes
    -----
    Rules: names refer to parts that exist; a clock stays below the maximum of its voltage scale;
    the supply voltage is in its range and the regulator reaches the scale; a cache is a power of
    two of sets and lines; a tightly coupled memory is never cached; memories do not overlap; a
    flash gets at least the wait states its table demands; the arena is writable.
    """
    for rule in (_names, _derived_clocks, _supply, _clock_limits, _caches, _memories,
                 _wait_states, _overlaps, _placement, _prices, _npu):
        for broken in rule(section):
            return broken
    return None


def frequency_of(section: Section, name: str) -> float:
    """Return the frequency of a clock in Hz, through the clocks it is derived from."""
    return float(frequencies_of(section, name, {}))


def frequencies_of(section: Section, name: str, changed: Mapping[str, np.ndarray],
                   ) -> np.ndarray | float:
    """Return `frequency_of` a clock at every frequency of others, or of itself."""
    clock = section.clocks[name]
    if name in changed:
        return changed[name]
    if clock.frequency_hz is not None:
        return float(clock.frequency_hz.value)
    divided: np.ndarray | float = (frequencies_of(section, clock.of, changed)
                                   / float(clock.divide_by.value))
    return divided


def clock_of(section: Section, memory: Section) -> str:
    """Return the clock a memory's latency and wait states are in."""
    if memory.clock is not None:
        return str(memory.clock)
    if memory.bus is not None:
        return str(section.buses[memory.bus].clock)
    return main_core_clock(section)


def main_core_clock(section: Section) -> str:
    """Return the clock of the core that runs the network."""
    core = section.cores.get("main") or next(iter(section.cores.values()))
    return str(core.clock)


def demanded_wait_states(section: Section, memory: Section) -> int | None:
    """Return the wait states the part's table demands; None above the table's last frequency."""
    table = memory.wait_states_max_hz.get(section.supply.voltage_scale)
    if table is None:
        return 0 if not memory.wait_states_max_hz else None
    frequency_hz = frequency_of(section, clock_of(section, memory))
    return next((n for n, top_hz in enumerate(table.value) if frequency_hz <= top_hz), None)


def _cite(section: Section, leaf: Leaf) -> str:
    return f" ({section.sources.get(leaf.source, leaf.source)})"


def _unknown(path: str, name: str, what: str, accepted: Iterable[str]) -> Broken:
    return path, f"{what} {name!r} does not exist; {did_you_mean(name, accepted)}"


def _names(section: Section) -> Iterator[Broken]:
    if not section.cores or not section.memories or not section.clocks:
        yield "cores", "a board has at least one clock, one core and one memory"
        return
    parts: dict[str, Collection[str]] = {
        "clock": section.clocks, "cache": section.caches, "bus": section.buses,
        "memory": section.memories, "master": [*section.cores, *section.dma],
        "source": section.sources,
    }
    for path, what, name in _references(section):
        if name is not None and name not in parts[what]:
            yield _unknown(path, name, what, parts[what])


def _references(node: object, path: str = "") -> Iterator[tuple[str, str, str | None]]:
    """Yield every key that names another part: its path, the kind of part, the name."""
    if isinstance(node, dict):
        for name, child in node.items():
            yield from _references(child, f"{path}.{name}")
    if not isinstance(node, Section):
        return
    for name, child in node.items():
        kind, at = node.declared[name].kind, f"{path}.{name}" if path else name
        match kind:
            case Reference(part):
                yield at, part, child
            case Several(Reference(part)):
                for one in child:
                    yield at, part, one
            case _:
                yield from _references(child, at)
        if at == "prices":
            for key in child:
                yield f"prices.{key}", "memory", key.partition("@")[2] or None


def _derived_clocks(section: Section) -> Iterator[Broken]:
    for name, clock in section.clocks.items():
        if clock.of is None:
            if clock.frequency_hz is None or clock.divide_by is not None:
                yield f"clocks.{name}", "accepted: frequency_hz, or of and divide_by"
            continue
        if clock.frequency_hz is not None or clock.divide_by is None:
            yield (f"clocks.{name}.frequency_hz", f"it is derived from {clock.of}; accepted: "
                   f"clocks.{name}.divide_by or clocks.{clock.of}.frequency_hz")
        seen: set[str | None] = {name}
        at: str | None = clock.of
        while at is not None and at not in seen:
            seen.add(at)
            at = section.clocks[at].of
        if at is not None:
            yield f"clocks.{name}.of", f"it is derived from itself through {at}"


def _supply(section: Section) -> Iterator[Broken]:
    supply = section.supply
    span = supply.voltage_range_v
    if span is not None:
        if len(span.value) != 2 or span.value[0] > span.value[1]:
            yield "supply.voltage_range_v", "accepted: [lowest, highest]"
        elif not span.value[0] <= supply.voltage_v.value <= span.value[1]:
            yield ("supply.voltage_v",
                   f"{supply.voltage_v.value:g} V is outside the supply range; accepted: "
                   f"{span.value[0]:g} to {span.value[1]:g} V{_cite(section, span)}")
    if supply.regulators and supply.regulator not in supply.regulators:
        yield ("supply.regulator", f"this part has no {supply.regulator}; accepted: "
               + ", ".join(supply.regulators))
    able = supply.regulators_by_scale.get(supply.voltage_scale, (supply.regulator,))
    if supply.regulator not in able:
        yield ("supply.voltage_scale", f"{supply.voltage_scale} is out of reach of the "
               f"{supply.regulator}; accepted: supply.regulator={' or '.join(able)}, or another "
               "scale")
    table = supply.efficiency_by_v
    if table is not None and table.value is not None and not all(
        len(row) == 2 and row[1] <= 1 for row in table.value
    ):
        yield "supply.efficiency_by_v", "accepted: a list of [supply voltage, efficiency 0 to 1]"
    scales = {scale: None for clock in section.clocks.values() for scale in clock.max_hz_by_scale}
    if scales and supply.voltage_scale not in scales:
        yield ("supply.voltage_scale", f"{supply.voltage_scale!r} is not a scale of this part; "
               f"accepted: {', '.join(scales)}")


def _clock_limits(section: Section) -> Iterator[Broken]:
    scale = section.supply.voltage_scale
    for name, clock in section.clocks.items():
        top = clock.max_hz_by_scale.get(scale)
        frequency_hz = frequency_of(section, name)
        if top is not None and frequency_hz > top.value:
            most = max(limit.value for limit in clock.max_hz_by_scale.values())
            others = [f"supply.voltage_scale={other} up to {limit.value / 1e6:g} MHz"
                      for other, limit in clock.max_hz_by_scale.items()
                      if top.value < limit.value >= min(frequency_hz, most)]
            key = "frequency_hz" if clock.of is None else "divide_by"
            yield (f"clocks.{name}.{key}",
                   f"{frequency_hz / 1e6:g} MHz is above what voltage scale {scale} allows; "
                   f"accepted: up to {top.value / 1e6:g} MHz"
                   + "".join(f", or {other}" for other in others) + _cite(section, top))


MOST_LINES, MOST_WAYS = 1 << 18, 1024
"""Of a cache; each set is kept in memory, and its ways are looked at one after the other."""


def line_bytes_of(section: Section, cache: Section) -> int | None:
    """Return bytes of a line: stated, or one array read of the memory the cache serves."""
    if cache.line_bytes is not None:
        return int(cache.line_bytes.value)
    reads = {section.memories[name].read_bytes for name in cache.serves}
    read = reads.pop() if len(reads) == 1 else None
    if read is None:
        return None
    longest = cache.line_max_bytes
    return int(read.value) if longest is None else min(int(read.value), int(longest.value))


def _caches(section: Section) -> Iterator[Broken]:
    for name, cache in section.caches.items():
        if "ways" in cache.model_fields_set and cache.ways is None:
            yield (f"caches.{name}.ways", "null (not known) will not do; accepted: a number, or "
                   "omitted for a fully associative cache")
        if cache.settings_bytes and not cache.enabled:
            yield (f"caches.{name}.enabled", "it is the only way to what it serves; accepted: "
                   f"true{_cite(section, cache.settings_bytes)}")
        size_bytes, line_bytes = cache.size_bytes.value, line_bytes_of(section, cache)
        if line_bytes is None:
            yield (f"caches.{name}.line_bytes", "is required, unless the cache serves one memory "
                   "that states read_bytes")
            continue
        if line_bytes & (line_bytes - 1):
            yield (f"caches.{name}.line_bytes",
                   f"{line_bytes} is not a power of two; accepted: a power of two, such as 32")
        if size_bytes > MOST_LINES * line_bytes:
            yield (f"caches.{name}.size_bytes", f"{size_bytes} bytes are more than {MOST_LINES} "
                   f"lines of {line_bytes} bytes; accepted: up to {MOST_LINES * line_bytes}")
            continue
        if cache.ways and cache.ways.value > MOST_WAYS:
            yield f"caches.{name}.ways", f"{cache.ways.value}; accepted: 1 to {MOST_WAYS}"
            continue
        way_bytes = line_bytes * (cache.ways.value if cache.ways else size_bytes // line_bytes)
        sets, rest = divmod(size_bytes, way_bytes) if way_bytes else (0, 0)
        if rest or sets == 0 or sets & (sets - 1):
            near = max(way_bytes, line_bytes) << max(0, sets.bit_length() - 1)
            yield (f"caches.{name}.size_bytes",
                   f"{size_bytes} bytes are no power of two of sets of {way_bytes // line_bytes} "
                   f"lines of {line_bytes} bytes; accepted: for example {near} or {2 * near}")
        below = section.caches.get(cache.below or "")
        if below is not None and (below.below or (line_bytes_of(section, below) or 0) < line_bytes):
            yield (f"caches.{name}.below", f"{cache.below} has a cache below it, or shorter lines; "
                   "accepted: two levels, lines below at least as long")


def _memories(section: Section) -> Iterator[Broken]:
    for name, memory in section.memories.items():
        if memory.role == "tcm" and memory.cacheable:
            yield (f"memories.{name}.cacheable",
                   "tightly coupled memory bypasses the caches; accepted: false")
        if memory.role == "tcm" and memory.bus is not None:
            yield f"memories.{name}.bus", "tightly coupled memory is not on a bus; accepted: null"
        yield from _external_timings(name, memory)
    for name, cache in section.caches.items():
        for served in cache.serves:
            if section.memories[served].cacheable is False:
                yield (f"caches.{name}.serves",
                       f"memory {served} is not cacheable; accepted: cacheable memories")


def _external_timings(name: str, memory: Section) -> Iterator[Broken]:
    """Check that serial or row-and-bank memories are off the chip and state latencies that fit."""
    stated = [key for key in ("serial", "sdram") if getattr(memory, key) is not None]
    if not stated:
        return
    if len(stated) > 1 or memory.role not in ("external_ram", "external_flash"):
        yield (f"memories.{name}.{stated[-1]}", f"of a memory of role {memory.role} with "
               f"{' and '.join(stated)}; accepted: one of them, outside the chip")
    if memory.serial is not None and not MODE.fullmatch(memory.serial.mode):
        yield (f"memories.{name}.serial.mode", f"{memory.serial.mode!r}; accepted: lines and edges "
               "of command, address and data, such as 8D-8D-8D")


def _wait_states(section: Section) -> Iterator[Broken]:
    scale, supply_v = section.supply.voltage_scale, section.supply.voltage_v.value
    for name, memory in section.memories.items():
        table = memory.wait_states_max_hz.get(scale)
        demanded, stated = demanded_wait_states(section, memory), memory.wait_states
        path = f"memories.{name}.wait_states"
        for each, stated_hz in memory.wait_states_max_hz.items():
            for lower, upper in itertools.pairwise(stated_hz.value):
                if upper <= lower:
                    yield (f"{path}_max_hz.{each}", f"{upper / 1e6:g} MHz after {lower / 1e6:g} "
                           "MHz; accepted: frequencies that rise, as a wait state more allows")
        if demanded is None:
            frequency_mhz = frequency_of(section, clock_of(section, memory)) / 1e6
            top = "none" if table is None else f"{table.value[-1] / 1e6:g} MHz" + (
                "" if table.kind != "assumed" else f", assumed{_cite(section, table)}")
            yield (f"{path}_max_hz", f"no entry for {frequency_mhz:g} MHz at voltage scale {scale}"
                   f"; its highest is {top}; accepted: a lower clock or another voltage scale"
                   + ", or the table of the datasheet" * (", assumed" in top))
        elif table is not None and stated is not None and stated.value < demanded:
            yield (path, f"{stated.value} are fewer than the {demanded} the part demands at this "
                   f"clock; accepted: at least {demanded}{_cite(section, table)}")
        lowest = memory.wait_states_min_supply_v
        if lowest is not None and supply_v < lowest.value:
            yield ("supply.voltage_v", f"the wait states of {name} are stated for a supply of at "
                   f"least {lowest.value:g} V; accepted: from {lowest.value:g} V"
                   f"{_cite(section, lowest)}")


def _overlaps(section: Section) -> Iterator[Broken]:
    spans = sorted((start, start + memory.size_bytes.value, name)
                   for name, memory in section.memories.items()
                   for start in (memory.address.value,
                                 *(memory.windows.value if memory.windows else ())))
    for (_, end, lower), (start, _, upper) in itertools.pairwise(spans):
        if start < end:
            yield (f"memories.{upper}.address", f"{start:#x} lies inside {lower}, which ends at "
                   f"{end:#x}; accepted: memories that do not overlap")


def _placement(section: Section) -> Iterator[Broken]:
    role = section.memories[section.placement.arena].role
    if role not in WRITABLE_ROLES:
        yield "placement.arena", (f"the arena is written, {role} cannot be; accepted: a memory of "
                                  f"role {', '.join(WRITABLE_ROLES)}")


def _prices(section: Section) -> Iterator[Broken]:
    for key in section.prices:
        event = key.partition("@")[0]
        if event not in EVENTS:
            yield _unknown(f"prices.{key}", event, "event", EVENTS)


def _npu_units(npu: Section) -> Iterator[Broken]:
    for name, unit in npu.units.items():
        if name == THROUGH:
            yield f"npu.units.{name}", "is a path without units; accepted: any other name"
        if not unit.roles:
            yield f"npu.units.{name}.roles", f"accepted: one or more of {', '.join(ROLES)}"
        for role in unit.roles:
            if role not in ROLES:
                yield _unknown(f"npu.units.{name}.roles", role, "role", ROLES)
    for key in ("pre_unit_cycles", "post_unit_cycles", "pre_further_unit_cycles"):
        for name in getattr(npu.hand_over, key):
            if name not in npu.units:
                yield _unknown(f"npu.hand_over.{key}.{name}", name, "unit", tuple(npu.units))


def _npu(section: Section) -> Iterator[Broken]:
    npu = section.npu
    if npu is None:
        return
    if not npu.interfaces or not npu.pools:
        yield "npu", "an NPU has at least one interface and one pool"
    hosts = [core.clock for core in section.cores.values()]
    if npu.clock in hosts:
        own = [name for name in section.clocks if name not in hosts]
        yield ("npu.clock", f"{npu.clock} is the host core's, and cycles of the two are never added"
               f"; accepted: a clock of its own: {', '.join(own) or 'of: another, divide_by: 1'}")
    if npu.hand_over.clock not in hosts:
        yield ("npu.hand_over.clock", f"{npu.hand_over.clock} is no core's; accepted: "
               + ", ".join(hosts))
    yield from _npu_units(npu)
    if npu.cache is not None:
        way_bytes = npu.cache.line_bytes.value * npu.cache.ways.value
        if npu.cache.size_bytes.value % way_bytes:
            yield ("npu.cache.size_bytes", f"no whole number of sets; accepted: multiples of "
                   f"{way_bytes}")
    yield from _npu_pools(section)


def name_pools(npu: Section) -> dict[str, str]:
    """Return the pools an NPU's configuration has, each with its memory."""
    return {name: pool.memory for name, pool in npu.pools.items()
            if not pool.configs or npu.config in pool.configs}


def _npu_pools(section: Section) -> Iterator[Broken]:
    """Check that the pools are of the memories they lie in, together and singly."""
    npu = section.npu
    for name, pool in npu.pools.items():
        if pool.burst_max_beats is not None and pool.burst_max_beats.value not in BURST_BEATS:
            yield (f"npu.pools.{name}.burst_max_beats", "accepted: "
                   + ", ".join(map(str, BURST_BEATS)))
        memory_bytes = section.memories[pool.memory].size_bytes.value
        if pool.size_bytes is not None and pool.size_bytes.value > memory_bytes:
            yield (f"npu.pools.{name}.size_bytes", f"{pool.size_bytes.value} bytes are more than "
                   f"memories.{pool.memory}.size_bytes; accepted: up to {memory_bytes}")
    if npu.config and not name_pools(npu):
        able = dict.fromkeys(name for pool in npu.pools.values() for name in pool.configs or ())
        yield "npu.config", f"no pool is stated for {npu.config}; accepted: {', '.join(able)}"
    for memory in dict.fromkeys(pool.memory for pool in npu.pools.values()):
        sizes = [pool.size_bytes.value for pool in npu.pools.values()
                 if pool.memory == memory and pool.size_bytes is not None]
        memory_bytes = section.memories[memory].size_bytes.value
        if sum(sizes) > memory_bytes:
            yield ("npu.pools", f"those in {memory} sum to {sum(sizes)} bytes; accepted: up to "
                   f"{memory_bytes}")
