"""Tables of `twin firmware`: an image's sizes, a run on a board, several builds side by side."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, Group, Table, new_pairs, new_table, spaced, tabulate


def build_report(build: Any) -> Content:
    """Return what was built, and its sizes beside the predicted ones."""
    sizes = build.sizes
    table = tabulate((Column("bytes", itemgetter(0)), number(
        "image", lambda row: getattr(sizes, row[1])), number(
        "predicted", lambda row: build.predicted[row[1]])), (
        ("weights and requantisation", "weights_bytes"), ("code and other constants", "code_bytes"),
        ("flash", "flash_bytes"), ("arena", "arena_bytes"), ("RAM", "ram_bytes")))
    where = ", weights copied to RAM" if sizes.weights_in_ram else ""
    if sizes.lies_in_ram:
        where = ", code and weights; a flash holds none of it"
    lines = [f"{one.name} {one.used_bytes:,} of {one.size_bytes:,}" for one in sizes.memories]
    return Group(
        new_pairs((("image", str(build.image)), ("port", build.port.name),
                   ("compiler", build.compiler))),
        table,
        f"RAM: arena, {sizes.bss_bytes + sizes.data_bytes:,} of the run loop with {build.samples:,}"
        f" samples and a copy of the input, {sizes.stack_bytes:,} of stack{where}",
        f"by memory: {', '.join(lines)} bytes" if lines else None)


def run_report(run: Any) -> Content:
    """One row per layer: what was counted, and whether its output was right."""
    verdicts = {True: "equal", False: "DIFFERS", None: "float"}
    table = tabulate((number("layer", "index", "{}"), Column("op"),
                      number(run.counter, "count", "{:,.0f}"),
                      Column("output", lambda layer: verdicts[layer.equal])), run.layers)
    table.add_row(("", "checksums, between layers", f"{run.outside:,.0f}", ""))
    table.add_row(("", "inference", f"{run.total:,.0f}", ""), style="bold")
    table.add_row(("", "set-up", f"{run.setup:,.0f}", ""))
    kind = "simulated" if run.simulated else "measured"
    return Group(table, f"{run.counter}: {kind}; output bit for bit that of the arithmetic in "
                        f"{sum(layer.equal is True for layer in run.layers)} of "
                        f"{sum(layer.equal is not None for layer in run.layers)} int8 layers; a "
                        "checksum after each is in this inference, not in that of `twin measure`.")


def comparison_report(builds: Sequence[Any], runs: Sequence[Any]) -> Content:
    """Several builds of one network side by side, each against the first."""
    headers = [build.compiler for build in builds]
    table: Table = new_table(("layer", "op", *headers), ("layer", *headers),
                             drops=tuple(reversed(headers[1:])), rows=(
        (str(rows[0].index), rows[0].op, *_relative([row.count for row in rows]))
        for rows in zip(*(run.layers for run in runs), strict=True)))
    table.add_row(("", "checksums, between layers", *_relative([run.outside for run in runs])))
    table.add_row(("", "inference", *_relative([run.total for run in runs])), style="bold")
    table.add_row(("", "code bytes", *_relative([build.sizes.code_bytes for build in builds])))
    table.add_row(("", "output", *("equal" if run.is_right else "DIFFERS" for run in runs)))
    kind = "simulated" if runs[0].simulated else "measured"
    whole = new_table(("build", "one inference", "code bytes"), ("one inference", "code bytes"),
                      rows=zip(headers, _relative([run.total for run in runs]), _relative(
                          [build.sizes.code_bytes for build in builds]), strict=True))
    return spaced([table, whole, f"{runs[0].counter} ({kind}), and relative to {headers[0]}."])


def _relative(values: Sequence[float]) -> list[str]:
    first = values[0]
    return [f"{value:,.0f}" + (f" {value / first - 1:+.1%}" if place and first else "")
            for place, value in enumerate(values)]
