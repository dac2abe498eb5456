"""The epochs of a prediction, a line each, and the whole model as its profiler sums it up."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from calibration.fitting.intervals import Interval
from hwmodels.quantities import format_time
from twin.attribution.predicted import side_of_prediction
from twin.deployment.costs import EpochPrediction
from twin.prediction.prediction import Prediction
from twin.reports.tables.epochs import model_lines
from twin.reports.tables.layout import add_row, new_table, spaced

_HEADERS = ("epoch", "type", "operations", "npu cycles", "compute", "pre", "post", "ms", "%",
            "90 % interval", "waits for")


def epoch_table(prediction: Prediction) -> RenderableType:
    """Return every epoch in a line and the whole model; `epochs_report` has all the lines."""
    table = new_table(_HEADERS, _HEADERS[3:9])
    sure = prediction.certainty.epochs if prediction.certainty is not None else ()
    names = [part.name for part in side_of_prediction(prediction).parts]
    for place, (name, epoch) in enumerate(zip(names, prediction.epochs, strict=True)):
        add_row(table, _cells(name, epoch, prediction.time_us, sure[place] if sure else None))
    model = Group(*(Text(line) for line in model_lines(side_of_prediction(prediction))))
    return spaced([table, model])


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
