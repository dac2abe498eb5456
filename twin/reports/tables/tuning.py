"""Builds of the firmware side by side: predicted, and counted on a virtual board."""

from __future__ import annotations

from typing import Any

from hwmodels.quantities import format_number, format_size
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, new_pairs, spaced, tabulate


def tuning_report(tuned: Any) -> Content:
    """Return one row per build, best predicted first, and how often prediction chose right."""
    table = tabulate((
        number("tile", "tile", "{}"), Column("level"),
        number("predicted cycles", "cycles", format_number),
        number("RAM", "ram_bytes", format_size),
        number("counted", "run", lambda run: "" if run is None else format_number(run.total)),
        Column("", lambda one: "kept" if one is tuned.kept else "")), tuned.candidates)
    (right, judged), (ordered, pairs) = tuned.layers, tuned.pairs
    counter = tuned.kept.run.counter if tuned.kept.run else ""
    return spaced([table, new_pairs([
        ("counted", f"{counter} of {tuned.virtual}: simulated, not silicon"),
        ("best predicted", "was the best counted" if tuned.best_was_best else
         f"was not the best counted: tile {tuned.kept.tile} at {tuned.kept.level} was"),
        ("layer by layer", f"the build predicted best was best counted for {right} of {judged} "
                           "layers that differ between builds"),
        ("pairs", f"{ordered} of {pairs} in the order predicted"),
        ("predict with it", f"--runtime firmware@{tuned.kept.level} --set kernels.tile="
                            f"{tuned.kept.tile}")])])
