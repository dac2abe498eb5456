"""Tasks of an accelerator as plots and a table."""

from __future__ import annotations

from hwmodels.quantities import format_time, format_used, significant
from twin.pricing.accelerator.timeline import list_spans
from twin.pricing.prediction import Prediction
from twin.reports.bars import chart_spans, chart_tasks
from twin.reports.columns import Column, number
from twin.reports.page.bars import plot_bars
from twin.reports.page.parts import Section, Table, make_section, make_table, notes
from twin.reports.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

_POOLS = tuple(zip((BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY), "/\\x-|+", strict=True))
_WORDS = {"sw": "software", "hybrid": "host steps the engines", "hw": "hardware"}


def describe_tasks(prediction: Prediction) -> Section | None:
    """Return what the accelerator does in each task; None without one."""
    coverage = prediction.coverage
    if coverage is None:
        return None
    caption = (f"{coverage.npu_layers} layers on the accelerator, {coverage.host_layers} on the "
            f"host; {format_time(coverage.npu_us)} on the one, {format_time(coverage.host_us)} on "
            f"the other, {format_time(coverage.hand_over_us)} for handing over.")
    pools = tuple(
        f"{name}: {format_used(*fill)}"
        for name, fill in prediction.deployment.plan.filled.items())
    chart = chart_spans(prediction, list_spans(prediction, steps=False), _POOLS)
    name = f"{prediction.compiler.task_name}s"
    return make_section(
        name, name.capitalize(), plot_bars(chart, height_px=110 + 22 * len(chart.rows)),
        plot_bars(chart_tasks(prediction), height_px=340), list_tasks(prediction), *notes(*pools),
        lead=caption)


TASKS = (
    Column("kind", lambda task: _WORDS.get(task.kind, task.kind)),
    Column("layers", lambda task: ", ".join(map(str, task.run.task.layers))),
    number("ms", "time_us", lambda time_us: significant(time_us / 1e3)),
    number("NPU cycles", "run.core_npu_cycles", "{:,.0f}"),
    number("MCU cycles around it", lambda task: task.pre_cpu_cycles + task.post_cpu_cycles,
           "{:,.0f}"))


def list_tasks(prediction: Prediction) -> Table:
    """Return a row for each task."""
    word = prediction.compiler.task_name
    return make_table(
        f"{word}-table", f"{word.capitalize()}s; cycles of two clocks are never added",
        (Column(word, "name"), *TASKS), prediction.tasks,
        details=lambda task: ((f"{part.resource}, {part.cause}",
                                f"{part.npu_cycles:,.0f} NPU cycles")
                               for part in task.run.exposed))
