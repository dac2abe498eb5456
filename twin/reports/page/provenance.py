"""Where figures come from: learnt prices, the facts of the board, versions, hashes."""

from __future__ import annotations

import platform
from collections import Counter

from hwmodels.quantities import NOT_KNOWN, significant
from twin.attribution.views import PublishedView, View
from twin.documents import find_version
from twin.pricing.document_types import PredictionDocument
from twin.pricing.prediction import Prediction
from twin.reports.columns import Column
from twin.reports.intervals import chart_intervals
from twin.reports.page.beside import judge, tell_coverage
from twin.reports.page.charts import plot_chart
from twin.reports.page.parts import Notes, Pairs, Section, make_section, make_table, notes
from twin.reports.tables.header import calibration_pairs, describe_rest, interval_pairs
from twin.studies.study.tasks import find_versions

PACKAGES = ("embedded-twin", "numpy", "plotly", "jinja2")
"""Whose versions a page names."""

MOST_DRAWN = 40
"""Layers whose intervals are drawn: those that take most time."""


FACTS = (Column("path"), Column("value", "value", lambda value: NOT_KNOWN if value is None
                                        else _write(value)),
         Column("kind"), Column("source"))


def describe_certainty(prediction: Prediction, measured: View | None,
                       published: PublishedView | None) -> Section:
    """Return the learnt prices in force, what intervals rest on, and whether they held here."""
    pairs = [*calibration_pairs(prediction), *interval_pairs(prediction)]
    held = [] if published is None else [tell_coverage(published)]
    if measured is not None:
        held.append(judge(measured.difference)[0])
    pairs += [("held here", text) for text in held if text]
    sure = prediction.certainty
    lead = ("Stated prices: nothing was learnt for this board and runtime, so there are no "
            "intervals.") if sure is None else (
        f"Nine in ten measurements are meant to lie inside; the intervals are {sure.basis}: "
        f"{describe_rest(prediction)}. How often they held where it could be "
        "checked is in the project's tables of accuracy.")
    plots = []
    if sure is not None and any(one.time_us is not None for one in sure.layers):
        chart = chart_intervals(prediction, most=MOST_DRAWN)
        plots.append(plot_chart(chart, height_px=100 + 20 * len(chart.y.ticks)))
    return make_section("calibration", "Certainty", *plots, Pairs(tuple(pairs)), lead=lead)


def describe_provenance(prediction: Prediction, command: str, measured: View | None,
                        published: PublishedView | None) -> Section:
    """Return what made each figure, every fact of the board with its source, and the command."""
    deployment = prediction.deployment
    graph, board = deployment.graph, deployment.board
    sure = prediction.certainty
    kinds = Counter(fact.kind for fact in board.facts)
    figures = [
        ("time, energy", "predicted: events counted by models of core, caches and memories, times "
                         + ("the board's stated prices" if sure is None else
                            f"prices learnt in {sure.calibration}")),
        ("RAM, flash", "predicted: the memory plan of the runtime, sizes of weights and code"),
        ("board", ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
         + " facts, listed below")]
    if measured is not None:
        side = measured.difference.second
        figures.append((side.kind, f"{side.label}, {side.runs} run{'s' * (side.runs > 1)}, "
                                   f"runtime {side.runtime}"))
    if published is not None:
        figures.append(("published", "tables the project ships, a source with each row"))
    hashes = [("model", f"{graph.name}, sha256 {graph.sha256}"),
              ("architecture", graph.architecture_id), (
                  "document", f"schema {find_version(PredictionDocument)}"),
              ("runtime", deployment.runtime.identity), ("calibration", "none" if sure is None
                                                         else sure.calibration),
              ("made with", ", ".join((*list_versions(), f"Python {platform.python_version()}")))]
    facts = make_table("fact-table", f"Facts of {board.name}", FACTS, board.facts)
    return make_section("provenance", "Sources", Pairs((*figures, *hashes)),
                        *_note_command(command), facts, folded=True)


def made_by(command: str, *inputs: tuple[str, str]) -> Section:
    """Return the command, the versions and the inputs that made a page of several predictions."""
    return make_section("provenance", "Sources", Pairs((
        ("figures", "predicted: events counted by models of core, caches and "
                    "memories, times learnt or stated prices; each row names which"),
        *inputs, ("made with", ", ".join(list_versions())))),
        *_note_command(command), folded=True)


def list_versions() -> list[str]:
    """Return the packages that made the figures, with their versions."""
    return [f"{name} {number}" for name, number in find_versions(PACKAGES).items()]


def _note_command(command: str) -> tuple[Notes, ...]:
    return notes(*filter(None, [command]), kind="code")


def _write(value: object) -> str:
    return significant(value, 6) if isinstance(value, float) else str(value)
