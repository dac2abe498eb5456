"""Tables of what there is: boards, runtimes, models, and the glossary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hwmodels.quantities import NOT_KNOWN, format_frequency, format_number, format_size, list_by_key
from twin.documents import fill
from twin.pricing.document_types import ModelRow
from twin.reports.columns import Column, number
from twin.reports.tables.parts import (
    Content,
    Group,
    Pairs,
    Table,
    Text,
    new_pairs,
    spaced,
    tabulate,
)

if TYPE_CHECKING:
    from hwmodels.board.facts import Board, Cache, Counters, Fact
    from twin.reports.glossary import Entry


BOARDS = (
    Column("board", "name", no_wrap=True), Column("soc"), Column("core", "core.model"),
    number("clock", lambda board: board.core_clock.frequency_hz, format_frequency),
    number("RAM", lambda board: sum_memories(board, ("tcm", "sram", "external_ram")),
           format_size),
    number("flash", lambda board: [format_size(size_bytes) for role in ("flash", "external_flash")
                                   if (size_bytes := sum_memories(board, (role,)))],
           lambda sizes: " + ".join(sizes) or "none"),
    number("data cache", lambda board: board.cache(board.core.dcache), lambda cache:
           format_size(cache.size_bytes) if cache else "none"))


def boards_table(boards: Iterable[Board], broken: Iterable[str] = ()) -> Table:
    """Return one row per board: core, clock, memory, caches; those that cannot be read by name."""
    table = tabulate(BOARDS, boards, drops=("soc", "data cache", "core"))
    for name in broken:
        table.add_row((name, "broken"), "red")
    return table


def board_report(board: Board, *, sources: bool) -> Content:
    """Return one board: its parts, and with `sources` every number with where it comes from."""
    from twin.studies.limits import describe_price

    cache_names = dict.fromkeys(name for name in (board.core.icache, board.core.dcache) if name)
    pairs = [
        ("board", board.name + (f" ({', '.join(board.aliases)})" if board.aliases else "")),
        ("soc", board.soc + (f": {board.description}" if board.description else "")),
        ("core", f"{board.core.model}, {board.core.isa}, floating point "
                 f"{board.core.fpu or f'in software by {board.core.soft_float}'}"),
        ("clocks", ", ".join(f"{clock.name} {format_frequency(clock.frequency_hz)}"
                             for clock in board.clocks)),
        ("supply", f"{board.power.voltage_v:g} V, {board.power.regulator}, voltage scale "
                   f"{board.power.voltage_scale}"),
        ("caches", "; ".join(f"{name} {_describe_cache(cache)}" for name in cache_names
                             if (cache := board.cache(name))) or "none"),
        ("placement", ", ".join(f"{what} in {memory}" for what, memory in board.placement)),
        ("sleep", ", ".join(f"{one.name} {one.current_ma} mA" for one in board.sleep) or NOT_KNOWN),
        ("price", describe_price(board)),
    ]
    parts: list[Content] = [new_pairs(pairs), tabulate(MEMORIES, board.memories)]
    if board.counters is not None:
        parts.append(new_pairs(_counter_pairs(board.counters)))
    if sources:
        parts.append(facts_table(board.facts))
    else:
        parts.append(Text(f"{_count_kinds(board.facts)}; --sources lists each", "dim"))
    return spaced(parts)


MEMORIES = (
    Column("memory", "name"), Column("role"), Column("address", "address", "0x{:08x}"),
    number("size", "size_bytes", format_size), number("wait states", "wait_states", "{}"),
    number("read, bytes", "read_bytes", "{}"),
    Column("cached", lambda memory: "yes" if memory.cacheable else "no"))


def runtimes_table(runtimes: Iterable[Any]) -> Table:
    """Return one row per runtime and version."""
    return tabulate((
        Column("runtime", "identity"), Column("types", lambda one: ", ".join(one.dtypes)),
        Column("structure"), Column("dead channels", _tell_dead_channels),
        number("cycles per call", "dispatch_cycles", format_number)), runtimes,
        drops=("dead channels", "structure"))


def _tell_dead_channels(runtime: Any) -> str:
    return "dropped" if runtime.drops_dead_channels else "computed"


def runtime_report(runtime: Any) -> Content:
    """Return one runtime with every number and its source."""
    from twin.reports.tables.learnt import NARROW, list_tables

    return spaced([
        new_pairs([
            ("runtime", runtime.identity), ("", runtime.description),
            ("kernels", f"{runtime.library}, loop structure {runtime.structure}"),
            *(() if runtime.learnt is None else tuple(
                ("" if place else "counted by running ELF", source)
                for place, source in enumerate(runtime.learnt.sources))),
            ("types", ", ".join(runtime.dtypes)),
            ("in place", ", ".join(runtime.in_place) or "nothing"),
            ("dead channels", _tell_dead_channels(runtime)),
            ("padding", "by the convolution" if runtime.fuses_padding else "a layer of its own"),
            ("outputs", "may overlap inputs" if runtime.overlaps else "apart from inputs"),
        ]),
        *(() if runtime.learnt is None else list_tables(runtime.learnt, NARROW)),
        facts_table(runtime.facts),
    ])


def models_table(graphs: Mapping[str, object]) -> Table:
    """Return one row per network of the zoo: name, layers, MACs, parameters."""
    return tabulate((
        Column("model", itemgetter("model")), number("layers", itemgetter("layers"), "{}"),
        number("MACs", itemgetter("macs")), number("parameters", itemgetter("parameters"))),
        [fill(ModelRow, graph) | {"model": name} for name, graph in graphs.items()])


def _write_value(fact: Fact) -> str:
    """Return a value as a table shows it: of a list of clocks, its ends and how many they are."""
    value: Any = fact.value
    if value is None:
        return NOT_KNOWN
    if isinstance(value, list) and "_hz" in fact.path:
        low, high = (format_frequency(end(value)) for end in (min, max))
        return low if low == high else f"{low} to {high} ({len(value)})"
    return f"{value:#010x}" if fact.path.endswith(".address") else str(value)


FACTS = (
    Column("path"), Column("value", _write_value, number=True), Column("kind"),
    Column("source", lambda fact: fact.source + (
        "" if fact.rel_sd is None else f" (relative sd {fact.rel_sd:g})")))


def facts_table(facts: Sequence[Fact]) -> Table:
    """Return every number with its kind and source."""
    return tabulate(FACTS, facts)


def entry_report(entry: Entry) -> Content:
    """Return a glossary entry."""
    also = f" (also: {', '.join(entry.aliases)})" if entry.aliases else ""
    pairs = [(label, text) for label, text in (
        ("equation", entry.equation), ("what moves it", entry.lever),
        ("beware", entry.myth), ("source", entry.source), ("see", ", ".join(entry.see)),
    ) if text]
    title = Text(entry.term, "bold", rest=f"  {entry.kind}{also}", rest_style="dim")
    below: list[Content] = [Text(""), new_pairs(pairs)] if pairs else []
    return Group(title, Text(entry.text), *below)


def terms_table(glossary: Mapping[str, Entry]) -> Table:
    """Return every term of the glossary, by kind."""
    kinds = list_by_key((entry.kind, entry.term) for entry in glossary.values())
    return new_pairs((kind, ", ".join(terms)) for kind, terms in kinds.items())


def paths_table(paths: Iterable[tuple[str, str, str]]) -> Table:
    """Return one row per what-if path: its name, what it takes, what it changes."""
    return tabulate((Column("path", itemgetter(0)), Column("takes", itemgetter(1)),
                     Column("changes", itemgetter(2))), paths)


def features_table(features: Iterable[tuple[str, str, str]]) -> Table:
    """Return one row per feature: its name, the what-if paths it sets, what that does."""
    return tabulate((Column("feature", itemgetter(0), no_wrap=True), Column("sets", itemgetter(1)),
                     Column("does", itemgetter(2))), features)


def _counter_pairs(counters: Counters) -> Pairs:
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


def sum_memories(board: Board, roles: tuple[str, ...]) -> int:
    """Return the bytes of a board's memories of some roles."""
    return sum(memory.size_bytes for memory in board.memories if memory.role in roles)


def _count_kinds(facts: Sequence[Fact]) -> str:
    kinds = Counter(fact.kind for fact in facts)
    return f"{len(facts)} numbers: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items())
