"""Epochs of an accelerator as plots and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwmodels.quantities import format_share, format_time, significant
from twin.prediction.accelerator.timeline import HOST, ROW_KINDS, Span, list_spans
from twin.prediction.ledger import bill_time_us
from twin.prediction.prediction import Prediction
from twin.reports.figures.palette import (
    BLUE,
    DARK_GREY,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
)
from twin.reports.page.page import plain
from twin.reports.page.parts import Cell, Column, Notes, Plot, Row, Section, Table
from twin.reports.page.styles import cause_marker, hatches

_POOLS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
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
    return Section(name="epochs", title="Epochs", lead=told, items=(
        draw_gantt(prediction), draw_epoch_bills(prediction), list_epochs(prediction),
        *([Notes(notes=pools)] if pools else [])))


def draw_gantt(prediction: Prediction) -> Plot:
    """Draw when host, units and stream engines are busy."""
    spans = list_spans(prediction, steps=False)
    kinds = {span.row: span.kind for span in spans}
    rows = sorted(kinds, key=lambda row: (ROW_KINDS.index(kinds[row]), row))
    pools = list(dict.fromkeys(span.pool for span in spans if span.pool))
    groups: dict[tuple[str, str, str], list[Span]] = {}
    for span in spans:
        name, colour, hatch = (
            (f"engine, {span.pool}", _POOLS[pools.index(span.pool) % len(_POOLS)], "/\\x-|+"[
                pools.index(span.pool) % 6]) if span.pool else
            ("host", DARK_GREY, "") if span.row == HOST else ("unit", GREY, "."))
        groups.setdefault((name, colour, hatch), []).append(span)
    traces: list[Mapping[str, Any]] = [{
        "type": "bar", "orientation": "h", "name": plain(name), "y": [one.row for one in mine],
        "base": [one.start_us / 1e3 for one in mine],
        "x": [(one.end_us - one.start_us) / 1e3 for one in mine],
        "marker": {"color": colour, "line": {"width": 0}, "pattern": hatches(hatch)},
        "hoverinfo": "text", "hovertext": [
            f"{plain(one.label)}<br>{format_time(one.start_us)} to {format_time(one.end_us)}"
            for one in mine]} for (name, colour, hatch), mine in groups.items()]
    return Plot(
        name="timeline", title="Who is busy when",
        told=f"{len(prediction.epochs)} epochs in {format_time(prediction.time_us)}; stream "
             "engines by the pool they are bound to. Drag to look closer, double click to go back.",
        traces=tuple(traces), height_px=110 + 22 * len(rows), layout={
            "barmode": "overlay", "xaxis": {"title": {"text": "time, ms"}},
            "yaxis": {"autorange": "reversed", "categoryorder": "array", "categoryarray": rows,
                      "dtick": 1}})


def draw_epoch_bills(prediction: Prediction) -> Plot:
    """Draw one bar for each epoch, stacked by cause, host and accelerator as time."""
    traces: list[Mapping[str, Any]] = []
    epochs = prediction.epochs
    for cause in prediction.bill.causes():
        heights = [bill_time_us(prediction, epoch.bill, cause) / 1e3 for epoch in epochs]
        if any(heights):
            traces.append({
                "type": "bar", "name": cause, "y": heights,
                "x": [epoch.number for epoch in epochs],
                "marker": cause_marker(cause) | {"line": {"width": 0}}, "hoverinfo": "text",
                "hovertext": [f"{plain(epoch.name)}<br>{cause} {format_time(1e3 * height)}"
                              for epoch, height in zip(epochs, heights, strict=True)]})
    longest = max(epochs, key=lambda epoch: epoch.time_us)
    return Plot(name="epoch-bills", title="Bill of each epoch", traces=tuple(traces),
                told=f"{longest.name} is the longest: {format_time(longest.time_us)}.",
                height_px=340, layout={"barmode": "stack",
                                       "xaxis": {"title": {"text": "epoch"}, "type": "category"},
                                       "yaxis": {"title": {"text": "time, ms"}}})


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
