"""Builds of the firmware side by side: predicted, and counted on a virtual board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hwmodels.quantities import format_number, format_size
from twin.reports.tables.parts import Content, add_row, new_pairs, new_table, spaced

if TYPE_CHECKING:
    from twin.studies.tune import Tuning


def tuning_report(tuned: Tuning) -> Content:
    """Return one row per build, best predicted first, and how often prediction chose right."""
    table = new_table(("tile", "level", "predicted cycles", "RAM", "counted", ""),
                      ("tile", "predicted cycles", "RAM", "counted"))
    for one in tuned.candidates:
        add_row(table, (str(one.tile), one.level, format_number(one.cycles),
                        format_size(one.ram_bytes),
                        "" if one.run is None else format_number(one.run.total),
                        "kept" if one is tuned.kept else ""))
    (right, judged), (ordered, pairs) = tuned.layers, tuned.pairs
    counter = tuned.kept.run.counter if tuned.kept.run else ""
    return spaced([table, new_pairs([
        ("counted", f"{counter} of {tuned.virtual}: simulated, not silicon"),
        ("best predicted", "was the best counted" if tuned.best_was_best else
         f"was not the best counted: tile {tuned.kept.tile} at {tuned.kept.level} was"),
        ("layer by layer", f"the build predicted best was best counted for {right} of {judged} "
                           "layers that differ between builds"),
        ("pairs", f"{ordered} of {pairs} in the order predicted")])])
