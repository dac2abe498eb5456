"""When what runs in an inference on an accelerator: spans of the host, units and stream engines."""

from __future__ import annotations

from collections.abc import Iterable

from hwmodels.frozen import frozen
from hwmodels.schedule import THROUGH, Task
from hwmodels.schedule.run import trace_task
from twin.deployment.costs import TaskPrediction
from twin.pricing.prediction import Prediction

HOST = "host"
"""Row of the host core."""

ROW_KINDS = (HOST, "unit", "engine")
"""What a row is of, in the order rows are shown."""


@frozen
class Span:
    """Something busy for a while.

    Parameters
    ----------
    row
        "host", a unit by the board's name for it, the second at work beside it with a number
        ("MATRIX", "MATRIX 2"), or an engine by the board's name and its number ("DMA 4").
    task
        Index of the task.
    start_us, end_us
        From the start of the inference.
    kind
        Of `ROW_KINDS`.
    pool
        Pool an engine moves bytes of; "" for others.
    direction
        "in", "out" or "".
    """

    row: str
    label: str
    task: int
    start_us: float
    end_us: float
    kind: str
    pool: str = ""
    bytes: float = 0.0
    direction: str = ""


def list_spans(prediction: Prediction, *, steps: bool = True,
               tasks: Iterable[int] | None = None) -> tuple[Span, ...]:
    """Return what is busy when, in the order of tasks.

    Parameters
    ----------
    prediction
        On an accelerator.
    steps
        A span for each step of an engine or unit; otherwise one from its first to its last.
    tasks
        Indices of the tasks wanted; by default all.

    Returns
    -------
    tuple of Span
        None without an accelerator.
    """
    wanted = None if tasks is None else set(tasks)
    spans: list[Span] = []
    for task in prediction.tasks:
        if wanted is None or task.index in wanted:
            spans += _host_spans(prediction, task)
            spans += _npu_spans(prediction, task, steps)
    return tuple(spans)


def _host_spans(prediction: Prediction, task: TaskPrediction) -> list[Span]:
    board = prediction.board
    per_us = board.core_clock.frequency_hz * 1e-6
    pre_us, core_us, post_us = (cycles / per_us for cycles in (
        task.pre_cpu_cycles, task.core_cpu_cycles, task.post_cpu_cycles))
    phases = (("pre", task.start_us, pre_us),
              ("post" if task.step.kind != "host" else "kernels", task.start_us + pre_us + core_us,
               post_us))
    return [Span(row=HOST, kind=HOST, label=f"{task.name} {what}", task=task.index,
                 start_us=start, end_us=start + length)
            for what, start, length in phases if length > 0]


def _npu_spans(prediction: Prediction, task: TaskPrediction, steps: bool) -> list[Span]:
    board = prediction.board
    npu = board.npu
    if npu is None or task.step.kind == "host":
        return []
    per_us = npu.frequency_hz * 1e-6
    billed = task.bill.clock_cycles().get(npu.clock, 0.0)
    if billed and npu.clock != board.core.clock:  # Learnt prices lengthen all of a task alike.
        per_us *= task.run.core_npu_cycles / billed
    host_per_us = board.core_clock.frequency_hz * 1e-6
    begin_us = task.start_us + task.pre_cpu_cycles / host_per_us
    asked = task.run.task
    transfers = {f"E{one.channel}": one for one in asked.transfers}
    rows = _name_units(asked)
    spans: dict[str, list[Span]] = {}
    for part in trace_task(asked, npu):
        transfer = transfers.get(part.node)
        unit = None if transfer else asked.units[int(part.node[1:])]
        if unit is not None and unit.kind == THROUGH:
            continue
        for row in [f"{npu.engine_name} {transfer.channel}"] if transfer else rows[part.node]:
            spans.setdefault(row, []).append(Span(
                row=row, kind="engine" if transfer else "unit", task=task.index, bytes=part.bytes,
                label=(f"{task.name} {transfer.operand or transfer.direction} {transfer.pool}"
                       if transfer else task.name),
                start_us=begin_us + part.start_npu_cycle / per_us,
                end_us=begin_us + part.end_npu_cycle / per_us,
                pool=transfer.pool if transfer else "",
                direction=transfer.direction if transfer else ""))
    if steps:
        return [span for parts in spans.values() for span in parts]
    return [_join(parts) for parts in spans.values()]


def _name_units(task: Task) -> dict[str, list[str]]:
    """Rows of each node of units: a convolution may take several, and each has its own."""
    seen: dict[str, int] = {}
    rows = {}
    for position, unit in enumerate(task.units):
        first = seen.get(unit.kind, 0) + 1
        seen[unit.kind] = first + unit.count - 1
        rows[f"U{position}"] = [unit.kind if number == 1 else f"{unit.kind} {number}"
                                for number in range(first, first + unit.count)]
    return rows


def _join(parts: list[Span]) -> Span:
    first = parts[0]
    return Span(row=first.row, kind=first.kind, label=first.label, task=first.task,
                start_us=first.start_us, end_us=max(part.end_us for part in parts), pool=first.pool,
                bytes=sum(part.bytes for part in parts), direction=first.direction)


def sample_bandwidth(spans: Iterable[Span], end_us: float, bins: int = 400,
                     ) -> dict[str, list[float]]:
    """Return bytes per second of each pool over time.

    Parameters
    ----------
    bins
        Equal parts the time is cut into.

    Returns
    -------
    dict of str to list of float
        MB/s by pool, one value per bin; a span's bytes are spread evenly over its time.
    """
    width_us = end_us / bins if end_us else 1.0
    rates: dict[str, list[float]] = {}
    for span in spans:
        if not span.bytes:
            continue
        sums = rates.setdefault(span.pool, [0.0] * bins)
        length = max(span.end_us - span.start_us, 1e-9)
        first, last = int(span.start_us / width_us), int(span.end_us / width_us)
        for place in range(first, min(last, bins - 1) + 1):
            overlap = (min(span.end_us, (place + 1) * width_us)
                       - max(span.start_us, place * width_us))
            sums[place] += span.bytes * max(0.0, overlap) / length / width_us
    return rates
