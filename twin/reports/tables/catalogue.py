"""Tables of what there is: boards, runtimes, models, and the glossary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hwmodels.quantities import NOT_KNOWN, format_frequency, format_number, format_size
from twin.reports.tables.parts import (
    Content,
    Group,
    Table,
    Text,
    add_row,
    new_pairs,
    new_table,
    spaced,
)

if TYPE_CHECKING:
    from hwmodels.board.facts import Board, Cache, Counters, Fact, Memory
    from twin.network.graph import Graph
    from twin.reports.glossary import Entry
    from twin.runtimes import Runtime


def boards_table(boards: Iterable[Board], broken: Iterable[str] = ()) -> Table:
    """Return one row per board: core, clock, memory, caches; those that cannot be read by name."""
    table = new_table(("board", "soc", "core", "clock", "RAM", "flash", "data cache"),
                      ("clock", "RAM", "flash", "data cache"), drops=("soc", "data cache", "core"))
    table.columns[0].no_wrap = True
    for board in boards:
        cache = board.cache(board.core.dcache)
        add_row(table, (board.name, board.soc, board.core.model,
                        format_frequency(board.clock(board.core.clock).frequency_hz),
                        format_size(_size(board, ("tcm", "sram"))),
                        format_size(_size(board, ("flash", "external_flash"))),
                        format_size(cache.size_bytes) if cache else "none"))
    for name in broken:
        add_row(table, (name, "broken"), "red")
    return table


def board_report(board: Board, *, sources: bool) -> Content:
    """Return one board: its parts, and with `sources` every number with where it comes from."""
    from twin.studies.prices import describe_price

    cache_names = dict.fromkeys(name for name in (board.core.icache, board.core.dcache) if name)
    pairs = [
        ("board", board.name + (f" ({', '.join(board.aliases)})" if board.aliases else "")),
        ("soc", board.soc + (f": {board.description}" if board.description else "")),
        ("core", f"{board.core.model}, {board.core.isa}, floating point "
                 f"{board.core.fpu or 'in software'}"),
        ("clocks", ", ".join(f"{clock.name} {format_frequency(clock.frequency_hz)}"
                             for clock in board.clocks)),
        ("supply", f"{board.power.voltage_v:g} V, {board.power.regulator}, voltage scale "
                   f"{board.power.voltage_scale}"),
        ("caches", "; ".join(f"{name} {_describe_cache(cache)}" for name in cache_names
                             if (cache := board.cache(name))) or "none"),
        ("placement", ", ".join(f"{what} in {memory}" for what, memory in board.placement)),
        ("price", describe_price(board)),
    ]
    parts: list[Content] = [new_pairs(pairs), _memories_table(board.memories)]
    if board.counters is not None:
        parts.append(new_pairs(_counter_pairs(board.counters)))
    if sources:
        parts.append(facts_table(board.facts))
    else:
        parts.append(Text(f"{_count_kinds(board.facts)}; --sources lists each", style="dim"))
    return spaced(parts)


def runtimes_table(runtimes: Iterable[Runtime]) -> Table:
    """Return one row per runtime and version."""
    table = new_table(("runtime", "types", "structure", "dead channels", "cycles per call"),
                      ("cycles per call",), drops=("dead channels", "structure"))
    for runtime in runtimes:
        add_row(table, (runtime.identity, ", ".join(runtime.dtypes), runtime.structure,
                        "dropped" if runtime.drops_dead_channels else "computed",
                        format_number(runtime.dispatch_cycles)))
    return table


def runtime_report(runtime: Runtime) -> Content:
    """Return one runtime with every number and its source."""
    return spaced([
        new_pairs([
            ("runtime", runtime.identity),
            ("", runtime.description),
            ("kernels", f"{runtime.library}, loop structure {runtime.structure}"),
            *(() if runtime.learnt is None else tuple(
                ("" if place else "counted by running ELF", source)
                for place, source in enumerate(runtime.learnt.sources))),
            ("types", ", ".join(runtime.dtypes)),
            ("in place", ", ".join(runtime.in_place) or "nothing"),
            ("dead channels", "dropped" if runtime.drops_dead_channels else "computed"),
            ("padding", "by the convolution" if runtime.fuses_padding else "a layer of its own"),
            ("outputs", "may overlap inputs" if runtime.overlaps else "apart from inputs"),
        ]),
        *_list_learnt(runtime),
        facts_table(runtime.facts),
    ])


def _list_learnt(runtime: Runtime) -> list[Content]:
    if runtime.learnt is None:
        return []
    from twin.reports.tables.learnt import NARROW, kernels_table

    return [kernels_table(runtime.learnt, NARROW)]


def models_table(graphs: Mapping[str, Graph]) -> Table:
    """Return one row per network of the zoo: name, layers, MACs, parameters."""
    from twin.network.operators import graph_macs, graph_parameters

    headers = ("model", "layers", "MACs", "parameters")
    table = new_table(headers, headers[1:])
    for name, graph in graphs.items():
        add_row(table, (name, str(len(graph.layers)), f"{graph_macs(graph):,}",
                        f"{graph_parameters(graph):,}"))
    return table


def facts_table(facts: Sequence[Fact]) -> Table:
    """Return every number with its kind and source."""
    table = new_table(("path", "value", "kind", "source"), ("value",))
    for fact in facts:
        value = NOT_KNOWN if fact.value is None else str(fact.value)
        spread = f" (relative sd {fact.rel_sd:g})" if fact.rel_sd is not None else ""
        add_row(table, (fact.path, value, fact.kind, fact.source + spread))
    return table


def entry_report(entry: Entry) -> Content:
    """Return a glossary entry."""
    also = f" (also: {', '.join(entry.aliases)})" if entry.aliases else ""
    pairs = [(label, text) for label, text in (
        ("equation", entry.equation), ("what moves it", entry.lever),
        ("beware", entry.myth), ("source", entry.source),
        ("see", ", ".join(entry.see)),
    ) if text]
    title = Text(entry.term, style="bold", rest=f"  {entry.kind}{also}", rest_style="dim")
    below: list[Content] = [Text(""), new_pairs(pairs)] if pairs else []
    return Group(title, Text(entry.text), *below)


def terms_table(glossary: Mapping[str, Entry]) -> Table:
    """Return every term of the glossary, by kind."""
    kinds: dict[str, list[str]] = {}
    for entry in glossary.values():
        kinds.setdefault(entry.kind, []).append(entry.term)
    return new_pairs((kind, ", ".join(terms)) for kind, terms in kinds.items())


def paths_table(paths: Iterable[tuple[str, str, str]]) -> Table:
    """Return one row per what-if path: its name, what it takes, what it changes."""
    table = new_table(("path", "takes", "changes"))
    for path in paths:
        add_row(table, path)
    return table


def _memories_table(memories: Sequence[Memory]) -> Table:
    table = new_table(("memory", "role", "address", "size", "wait states", "read, bytes", "cached"),
                      ("size", "wait states", "read, bytes"))
    for memory in memories:
        add_row(table, (memory.name, memory.role, f"0x{memory.address:08x}",
                        format_size(memory.size_bytes), str(memory.wait_states),
                        str(memory.read_bytes), "yes" if memory.cacheable else "no"))
    return table


def _counter_pairs(counters: Counters) -> list[tuple[str, str]]:
    """Say what the silicon counts, and what can be measured at each level of metrics."""
    wrapping = ", ".join(counters.wrapping_counters)
    return [
        ("counters", counters.cycle_counter or "no cycle counter"),
        *([("", f"8-bit, wrapping: {wrapping}")] if wrapping else []),
        ("PMU", f"{counters.pmu_counters} event counters" if counters.pmu_counters else "none"),
        ("cache monitors", ", ".join(counters.cache_monitors) or "none"),
        *((level.upper(), text) for level, text in counters.levels),
    ]


def _describe_cache(cache: Cache) -> str:
    off = "" if cache.enabled else ", off"
    return (f"{format_size(cache.size_bytes)}, {cache.ways} ways of {cache.line_bytes}-byte "
            f"lines{off}")


def _size(board: Board, roles: tuple[str, ...]) -> int:
    return sum(memory.size_bytes for memory in board.memories if memory.role in roles)


def _count_kinds(facts: Sequence[Fact]) -> str:
    kinds: dict[str, int] = {}
    for fact in facts:
        kinds[fact.kind] = kinds.get(fact.kind, 0) + 1
    return f"{len(facts)} numbers: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items())
