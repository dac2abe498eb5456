"""Predictions for boards nobody measured, and what would narrow them, as tables."""

from __future__ import annotations

from collections.abc import Iterable

from calibration.fitting.intervals import Interval
from hwmodels.quantities import list_first, significant
from twin.learning.portability.plan import RUN, Expected, Ranking
from twin.learning.portability.port import Ported
from twin.pricing.prediction import Prediction
from twin.reports.tables.parts import Content, Table, Text, add_row, new_pairs, new_table, spaced


def ranking_report(ranking: Ranking) -> Content:
    """Return how much each micro-benchmark narrows the interval, and the best two."""
    certainty = ranking.certainty
    parts: list[Content] = [
        new_pairs([*_what(ranking.prediction),
                   ("predicted", f"{_ms(ranking.prediction.time_us)} ms, "
                                 f"{interval_text(certainty.time_us)}"),
                   ("rests on", certainty.calibration)]),
        narrowing_table(ranking),
        Text(f"best two: {' and '.join(ranking.best.names)}: from "
             f"{interval_text(certainty.time_us)} to {interval_text(ranking.best.time_us)}, "
             f"{ranking.best.narrowing:.1%} narrower")]
    if ranking.silent:
        parts.append(Text("tell of no price here: " + ", ".join(ranking.silent)))
    return spaced(parts)


def narrowing_table(ranking: Ranking) -> Table:
    """Return what each candidate would leave of the interval."""
    table = new_table(("run", "interval afterwards", "narrower", ""), ("narrower",),
                      "What narrows the interval")
    rows: Iterable[Expected] = (*ranking.single, *ranking.runs)
    for one in rows:
        (name,) = one.names
        network = name.startswith(RUN)
        add_row(table, (name.removeprefix(RUN), interval_text(one.time_us),
                        f"{one.narrowing:.1%}",
                        "a network under the same library" if network else "micro-benchmark"))
    return table


def ported_report(ported: Ported) -> Content:
    """Return a prediction for a board nobody measured: figure, interval, what both rest on."""
    prediction, certainty = ported.prediction, ported.prediction.certainty
    assert certainty is not None
    energy = "not known" if prediction.energy_uj is None else (
        f"{significant(prediction.energy_uj)} uJ"
        + ("" if certainty.energy_uj is None else
           f", {significant(certainty.energy_uj.low)} to {significant(certainty.energy_uj.high)}"))
    makeup, shipped = ported.makeup, ported.shipped
    pairs = new_pairs([
        *_what(prediction),
        ("physics", f"{_ms(ported.physics_us)} ms: counts on this board at datasheet prices"),
        ("learnt", f"x {prediction.time_us / ported.physics_us:.2f}: what the boards below took "
                   "over what their datasheets say"),
        ("predicted", f"{_ms(prediction.time_us)} ms, {interval_text(certainty.time_us)} "
                      f"({certainty.basis})"),
        ("twin predict", f"{_ms(shipped.time_us)} ms"
         + (f", {interval_text(shipped.certainty.time_us)}" if shipped.certainty else "")
         + f": {ported.difference}"),
        ("energy", energy),
        *([("voltage", shipped.voltage)] if shipped.voltage else []),
        ("interval of", f"{makeup.boards:.0%} what boards differ by, {makeup.parameters:.0%} "
                        f"prices left open, {makeup.model:.0%} what no price explains (variance "
                        "of log time)")])
    table = new_table(("board", "core", "runtime", "kind", "rows", "networks"), ("rows",),
                      "Rests on")
    for one in ported.behind:
        add_row(table, (one.board, one.core, one.runtime, one.kind, str(one.rows),
                        list_first(one.networks, 5) or "layers"))
    parts: list[Content] = [pairs, table]
    if ported.ranking is not None:
        parts.append(narrowing_table(ported.ranking))
    return spaced(parts)


def interval_text(interval: Interval) -> str:
    """Return an interval of microseconds as text in milliseconds."""
    return f"{_ms(interval.low)} to {_ms(interval.high)} ms at {interval.level:.0%}"


def _what(prediction: Prediction) -> list[tuple[str, str]]:
    deployment = prediction.deployment
    return [("network", deployment.graph.name), ("board", deployment.board.name),
            ("runtime", deployment.runtime.identity), ("kind", "predicted, warm")]


def _ms(time_us: float) -> str:
    return significant(time_us / 1e3)
