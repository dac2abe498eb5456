"""Predictions for boards nobody measured, and what would narrow them, as tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from calibration.fitting.intervals import Interval
from hwmodels.quantities import list_first, significant
from twin.pricing.prediction import Prediction
from twin.pricing.unmeasured import RUN, Ported, Ranking
from twin.reports.columns import Cell, Column, number
from twin.reports.tables.parts import Content, Pairs, Table, Text, new_pairs, spaced, tabulate


def ranking_report(ranking: Ranking) -> Content:
    """Return how much each micro-benchmark narrows the interval, and the best two."""
    certainty = ranking.certainty
    parts: list[Content] = [
        new_pairs([*_what(ranking.prediction),
                   ("predicted", f"{_ms(ranking.prediction.time_us)} ms, "
                                 f"{interval_text(certainty.time_us)}"),
                   ("rests on", certainty.calibration)]),
        narrowing_table(ranking),
        Text(f"{interval_text(certainty.time_us)} now; {say_best(ranking)}")]
    if ranking.silent:
        parts.append(Text("no use here (they measure no price this network needs): "
                          + ", ".join(ranking.silent)))
    return spaced(parts)


def say_best(ranking: Ranking) -> str:
    """Return what the best two micro-benchmarks leave, and a network that leaves less."""
    best, network = ranking.best, next(iter(ranking.runs), None)
    pair = (f"best two micro-benchmarks: {' and '.join(best.names)}, to "
            f"{interval_text(best.time_us)}, {best.narrowing:.1%} narrower")
    if network is None or network.narrowing <= best.narrowing:
        return pair
    return (f"measure {name_runs(network.names)} under the same library, to "
            f"{interval_text(network.time_us)}, {network.narrowing:.1%} narrower; {pair}")


NARROWING = (
    Column("run", lambda one: name_runs(one.names)),
    number("interval afterwards", lambda one: Cell(
        interval_text(one.time_us), one.time_us.high - one.time_us.low)),
    number("narrower", "narrowing", "{:.1%}"),
    Column("", lambda one: "a network under the same library" if one.names[0].startswith(RUN) else
           "micro-benchmark"))

BEHIND = (Column("board"), Column("core"), Column("runtime"),
          Column("kind"), number("rows", "rows", "{}"),
          Column("networks", lambda one: list_first(one.networks, 5) or "layers"))


def name_runs(names: Iterable[str]) -> str:
    """Return the runs of a candidate."""
    return ", ".join(name.removeprefix(RUN) for name in names)


def narrowing_table(ranking: Ranking) -> Table:
    """Return what each candidate would leave of the interval."""
    return tabulate(NARROWING, (*ranking.single, *ranking.runs), "What narrows the interval")


def ported_report(ported: Ported) -> Content:
    """Return a prediction for a board nobody measured: figure, interval, what both rest on."""
    prediction, certainty = ported.prediction, ported.prediction.certainty
    assert certainty is not None
    energy = "not known" if prediction.energy_uj is None else (
        f"{significant(prediction.energy_uj)} uJ"
        + ("" if certainty.energy_uj is None else
           f", {certainty.energy_uj.write(significant)}"))
    shipped = ported.shipped
    pairs = new_pairs([
        *_what(prediction),
        ("physics", f"{_ms(ported.physics_us)} ms: counts on this board at datasheet prices"),
        ("learnt", f"x {prediction.time_us / ported.physics_us:.2f}: what "
                   + ("boards of all published rows" if ported.is_of_all else "the boards below")
                   + " took over what their datasheets say"),
        ("predicted", f"{_ms(prediction.time_us)} ms, {interval_text(certainty.time_us)} "
                      f"({certainty.basis})"),
        ("twin predict", f"{_ms(shipped.time_us)} ms"
         + (f", {interval_text(shipped.certainty.time_us)}" if shipped.certainty else "")
         + f": {ported.difference}"),
        ("energy", energy), ("voltage", shipped.voltage) if shipped.voltage else None,
        ("interval of", say_makeup(ported))])
    return spaced([pairs, tabulate(BEHIND, ported.behind, say_behind(ported)),
                   None if ported.ranking is None else narrowing_table(ported.ranking)])


def say_makeup(ported: Ported) -> str:
    """Return what the variance of an interval is made of, in a clause."""
    makeup, guessed = ported.makeup, ported.certainty.draw.policies
    return (f"{makeup.boards:.0%} what boards differ by, {makeup.parameters:.0%} prices left open, "
            f"{makeup.model:.0%} what no price explains (variance of the logarithm of time)"
            + f"; guessed facts move its ends by x {guessed.min():.2f} and x {guessed.max():.2f}"
            * bool(np.ptp(guessed)))


def say_behind(ported: Ported) -> str:
    """Return what the rows of the boards named are: all it rests on, or some of it."""
    rows = sum(one.rows for one in ported.behind)
    return (f"Rests on all published rows, whichever board --from names; of those named, these "
            f"{rows}" if ported.is_of_all
            else f"Rests on these {rows} rows alone")


def interval_text(interval: Interval) -> str:
    """Return an interval of microseconds as text in milliseconds."""
    return f"{interval.write(_ms)} ms at {interval.level:.0%}"


def _what(prediction: Prediction) -> Pairs:
    deployment = prediction.deployment
    return [("network", deployment.graph.name), ("board", deployment.board.name),
            ("runtime", deployment.runtime.identity), ("kind", "predicted, warm")]


def _ms(time_us: float) -> str:
    return significant(time_us / 1e3)
