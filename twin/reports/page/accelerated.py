"""Epochs of an accelerator as plots and a table."""

from __future__ import annotations

from hwmodels.quantities import format_share, format_time, significant
from twin.pricing.accelerator.timeline import list_spans
from twin.pricing.prediction import Prediction
from twin.reports.bars import chart_epochs, chart_spans
from twin.reports.columns import Column, number
from twin.reports.page.bars import plot_bars
from twin.reports.page.parts import Section, Table, make_table, notes
from twin.reports.palette import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
)

_POOLS = tuple(zip((BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY), "/\\x-|+", strict=True))
_WORDS = {"sw": "software", "hybrid": "host steps the engines", "hw": "hardware"}


def describe_epochs(prediction: Prediction) -> Section | None:
    """Return what the accelerator does in each epoch; None without one."""
    coverage = prediction.coverage
    if coverage is None:
        return None
    caption = (f"{coverage.npu_layers} layers on the accelerator, {coverage.host_layers} on the "
            f"host; {format_time(coverage.npu_us)} on the one, {format_time(coverage.host_us)} on "
            f"the other, {format_time(coverage.hand_over_us)} for handing over.")
    pools = tuple(
        f"{name}: {used:,} of {size:,} bytes ({format_share(used, size)})"
        for name, (used, size) in prediction.deployment.plan.filled.items())
    chart = chart_spans(prediction, list_spans(prediction, steps=False), _POOLS)
    title = f"{prediction.compiler.task_name.capitalize()}s"
    return Section(name="epochs", title=title, lead=caption, items=(
        plot_bars(chart, height_px=110 + 22 * len(chart.rows)),
        plot_bars(chart_epochs(prediction), height_px=340), list_epochs(prediction),
        *notes(*pools)))


EPOCHS = (
    Column("kind", lambda epoch: _WORDS.get(epoch.kind, epoch.kind)),
    Column("layers", lambda epoch: ", ".join(map(str, epoch.run.task.layers))),
    number("ms", "time_us", lambda time_us: significant(time_us / 1e3)),
    number("NPU cycles", "run.core_npu_cycles", "{:,.0f}"),
    number("MCU cycles around it", lambda epoch: epoch.pre_cpu_cycles + epoch.post_cpu_cycles,
           "{:,.0f}"))


def list_epochs(prediction: Prediction) -> Table:
    """Return a row for each task."""
    return make_table(
        "epoch-table", f"{prediction.compiler.task_name.capitalize()}s; cycles of two clocks are "
        "never added", (Column(prediction.compiler.task_name, "name"), *EPOCHS), prediction.tasks,
        details=lambda epoch: ((f"{part.resource}, {part.cause}",
                                f"{part.npu_cycles:,.0f} NPU cycles")
                               for part in epoch.run.exposed))
