"""The epochs of a prediction, a line each, and the whole model as its profiler sums it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calibration.fitting.intervals import Interval
from hwmodels.quantities import format_time
from twin.attribution.predicted import side_of_prediction
from twin.deployment.costs import EpochPrediction
from twin.pricing.prediction import Prediction
from twin.reports.tables.epochs import model_lines
from twin.reports.tables.parts import (
    Console,
    Content,
    Group,
    Table,
    Text,
    add_row,
    natural_width,
    new_table,
    spaced,
)

_HEADERS = ("epoch", "type", "operations", "npu cycles", "compute", "pre", "post", "ms", "%",
            "90 % interval", "waits for")


_DROP_ORDER = ("compute", "post", "pre", "%", "type", "operations")
"""Columns given up, in this order, where the console has no room for all."""


def epoch_table(prediction: Prediction, console: Console) -> Content:
    """Return every epoch in a line and the whole model; `epochs_report` has all the lines."""
    rows = list(_rows(prediction))
    dropped: list[str] = []
    table = _lay_out(rows, dropped)
    for header in _DROP_ORDER:
        if natural_width(table) <= console.width:
            break
        dropped.append(header)
        table = _lay_out(rows, dropped)
    model = [Text(line) for line in model_lines(side_of_prediction(prediction))]
    if dropped:
        model.insert(0, Text(f"not shown at {console.width} columns: {', '.join(dropped)}",
                             style="dim"))
    return spaced([table, Group(*model)])


def _lay_out(rows: Sequence[Sequence[str]], dropped: Sequence[str]) -> Table:
    kept = [place for place, header in enumerate(_HEADERS) if header not in dropped]
    table = new_table([_HEADERS[place] for place in kept], _HEADERS[3:9])
    for row in rows:
        add_row(table, [row[place] for place in kept])
    return table


def _rows(prediction: Prediction) -> Iterator[tuple[str, ...]]:
    sure = prediction.certainty.epochs if prediction.certainty is not None else ()
    names = [part.name for part in side_of_prediction(prediction).parts]
    for place, (name, epoch) in enumerate(zip(names, prediction.epochs, strict=True)):
        yield _cells(name, epoch, prediction.time_us, sure[place] if sure else None)


def _cells(name: str, epoch: EpochPrediction, total_us: float,
           interval: Interval | None) -> tuple[str, ...]:
    run = epoch.run
    operations = " ".join(name if count == 1 else f"{name}:{count}"
                          for name, count in run.epoch.operations)
    waits = max(run.exposed, key=lambda part: part.npu_cycles, default=None)
    return (name, epoch.kind, operations, f"{run.core_npu_cycles:,}", f"{run.compute_cycles:,}",
            f"{epoch.pre_cpu_cycles:,.0f}", f"{epoch.post_cpu_cycles:,.0f}",
            f"{epoch.time_us / 1e3:.3f}", f"{100 * epoch.time_us / total_us:.1f}",
            "" if interval is None else
            f"{format_time(interval.low)} to {format_time(interval.high)}",
            "" if waits is None else waits.resource)
