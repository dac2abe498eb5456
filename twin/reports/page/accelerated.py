"""Epochs of an accelerator as plots and a table."""

from __future__ import annotations

from hwmodels.quantities import format_share, format_time, significant
from twin.pricing.accelerator.timeline import list_spans
from twin.pricing.prediction import Prediction
from twin.reports.bars import chart_epochs, chart_spans
from twin.reports.page.bars import plot_bars
from twin.reports.page.parts import Cell, Column, Notes, Row, Section, Table
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
    told = (f"{coverage.npu_layers} layers on the accelerator, {coverage.host_layers} on the host; "
            f"{format_time(coverage.npu_us)} on the one, {format_time(coverage.host_us)} on the "
            f"other, {format_time(coverage.hand_over_us)} for handing over.")
    pools = tuple(
        f"{name}: {used:,} of {size:,} bytes ({format_share(used, size)})"
        for name, (used, size) in prediction.deployment.plan.filled.items())
    chart = chart_spans(prediction, list_spans(prediction, steps=False), _POOLS)
    return Section(name="epochs", title="Epochs", lead=told, items=(
        plot_bars(chart, height_px=110 + 22 * len(chart.rows)),
        plot_bars(chart_epochs(prediction), height_px=340), list_epochs(prediction),
        *([Notes(notes=pools)] if pools else [])))


def list_epochs(prediction: Prediction) -> Table:
    """Return a row for each epoch."""
    rows = []
    for epoch in prediction.epochs:
        rows.append(Row(cells=(
            Cell(text=epoch.name), Cell(text=_WORDS.get(epoch.kind, epoch.kind)),
            Cell(text=", ".join(map(str, epoch.run.epoch.layers))),
            Cell(text=significant(epoch.time_us / 1e3), value=epoch.time_us),
            Cell(text=f"{epoch.run.core_npu_cycles:,.0f}", value=epoch.run.core_npu_cycles),
            Cell(text=f"{epoch.pre_cpu_cycles + epoch.post_cpu_cycles:,.0f}",
                 value=epoch.pre_cpu_cycles + epoch.post_cpu_cycles)),
            details=tuple((f"{part.resource}, {part.cause}", f"{part.npu_cycles:,.0f} NPU cycles")
                          for part in epoch.run.exposed)))
    return Table(name="epoch-table", caption="Epochs; cycles of two clocks are never added",
                 rows=tuple(rows), columns=(
                     Column(header="epoch"), Column(header="kind"), Column(header="layers"),
                     Column(header="ms", number=True), Column(header="NPU cycles", number=True),
                     Column(header="MCU cycles around it", number=True)))
