"""Caches as tables: layers, geometries, policies."""

from __future__ import annotations

from collections.abc import Sequence

from hwmodels.quantities import format_frequency, format_size, format_time, significant
from twin.pricing.locality import WORRYING, LayerLocality, Locality, ReplacementRange
from twin.reports.tables.parts import (
    Console,
    Content,
    Pairs,
    Table,
    Text,
    draw_bar,
    natural_width,
    new_pairs,
    new_table,
    spaced,
)
from twin.studies.caches import SweepPoint


def locality_report(locality: Locality, policies: ReplacementRange, sweep: Sequence[SweepPoint],
                    console: Console, prices: str = "stated", ) -> Content:
    """Return everything `twin cache` prints.

    Parameters
    ----------
    locality
        Layers in the board's caches.
    policies
        What not knowing the policy leaves open.
    sweep
        Other geometries; may be empty.
    prices
        At which times were predicted: "stated", or what learnt ones rest on.
    """
    return spaced([
        new_pairs(header_pairs(locality)), layer_table(locality, console),
        policy_line(policies, prices),
        sweep_table(sweep, [cache.name for cache in locality.caches]) if sweep else None])


def header_pairs(locality: Locality) -> Pairs:
    """Return model, board, runtime and caches."""
    deployment, board = locality.deployment, locality.deployment.board
    frequency = format_frequency(board.core_clock.frequency_hz)
    pairs = [("model", deployment.graph.name),
             ("board", f"{board.name}, {board.core.model} at {frequency}"),
             ("runtime", f"{deployment.runtime.identity}, weights in {deployment.weights_named}, "
                         f"arena in {deployment.arena_named}")]
    for cache in locality.caches:
        held = [memory.name for memory in board.memories if cache.may_hold(memory)]
        stores = "constants only" if cache.allocate == "read" else f"write {cache.write}"
        pairs.append(("cache", f"{cache.name}: {format_size(cache.size_bytes)}, {cache.sets} sets "
                               f"of {cache.ways} ways of {cache.line_bytes} bytes, "
                               f"{cache.replacement}, {stores}; of {', '.join(held)}"
                      + (f"; {cache.below} below" if cache.below else "")))
    for name, (looked_up, filled) in locality.lower.items():
        pairs.append(("below", f"{name}: {looked_up:,} lines looked up, {filled:,} filled"))
    return pairs or [("cache", "none")]


def layer_table(locality: Locality, console: Console) -> Table:
    """Return one row per layer: what was looked up, missed and written back.

    Where the console is narrow, the bar and the columns that matter least are omitted.
    """
    largest = max((layer.miss_rate or 0.0 for layer in locality.layers), default=0.0) or 1.0
    rows = [(_layer_cells(layer, locality.capacity_bytes)
             | {"": draw_bar((layer.miss_rate or 0.0) / largest, console)},
             "yellow" if layer.miss_rate is not None and layer.miss_rate > WORRYING else "")
            for layer in locality.layers]
    rows.append(({"op": "total", "looked up": f"{locality.accesses:,}",
                  "misses": f"{locality.misses:,}", "miss rate": _percent(locality.miss_rate),
                  "written back": f"{locality.write_backs:,}",
                  "not cached": f"{sum(layer.direct for layer in locality.layers):,}"}, "bold"))
    columns = ["layer", "op", "looked up", "misses", "miss rate", "written back", "working set",
               "not cached", ""]
    for spare in ("", "not cached", "written back", "working set", "looked up", None):
        table = new_table(columns, set(columns) - {"op", ""})
        for cells, style in rows:
            table.add_row((cells.get(column, "") for column in columns), style=style)
        if spare is None or natural_width(table) <= console.width:
            break
        columns.remove(spare)
    table.caption = Text("* more lines than the cache holds", "dim") if any(
        layer.working_set_bytes > locality.capacity_bytes for layer in locality.layers) else None
    return table


def _layer_cells(layer: LayerLocality, capacity_bytes: int) -> dict[str, str]:
    over = " *" if layer.working_set_bytes > capacity_bytes else ""
    return {"layer": str(layer.index), "op": layer.op, "looked up": f"{layer.accesses:,}",
            "misses": f"{layer.misses:,}", "miss rate": _percent(layer.miss_rate),
            "written back": f"{layer.write_backs:,}",
            "working set": f"{layer.working_set_bytes:,}{over}", "not cached": f"{layer.direct:,}"}


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.2f} %"


def policy_line(policies: ReplacementRange, prices: str) -> str:
    """Say what the replacement policy does to the time of an inference."""
    name, time_us = policies.time_us[0]
    at = "at stated prices, not calibrated" if prices == "stated" else f"calibrated: {prices}"
    if not policies.caches:
        return (f"replacement: {name}, as documented or asked for; an inference takes "
                f"{format_time(time_us)} {at}")
    others = ", ".join(f"{policy} {100 * (time / time_us - 1):+.2f} %"
                       for policy, time in policies.time_us[1:])
    return (f"replacement of {' and '.join(policies.caches)} is assumed ({name}, "
            f"{format_time(time_us)} {at}); otherwise: {others}")


def sweep_table(sweep: Sequence[SweepPoint], caches: Sequence[str]) -> Table:
    """Return the miss ratio by size (down) and ways (across) of the caches named."""
    ways = sorted({point.ways for point in sweep})
    table = new_table(("miss ratio, %", *(f"{way} way{'s' if way > 1 else ''}" for way in ways)),
                      [f"{way} way{'s' if way > 1 else ''}" for way in ways])
    rates = {(point.size_bytes, point.ways): significant(100 * point.miss_ratio) for point in sweep}
    for size in sorted({point.size_bytes for point in sweep}):
        table.add_row((format_size(size), *(rates.get((size, way), "-") for way in ways)))
    each = "each of " if len(caches) > 1 else ""
    table.caption = Text(f"size and ways of {each}{', '.join(caches)}", "dim")
    return table
