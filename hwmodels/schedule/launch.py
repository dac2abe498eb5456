"""What launching tasks costs where a board states it by channel, unit and value written.

    pre = a + b channels + e coefficients + sum over unit kinds of c(kind) + d(kind) (units - 1)

post likewise with d = c and e = 0; a task on the host costs its dispatch, all of it before. A
compiler that launches otherwise states the cycles of its tasks itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from hwmodels.board.npu import Npu
from hwmodels.quantities import sum_by_key
from hwmodels.schedule.task import Task


def launch_tasks(tasks: Sequence[Task], npu: Npu, stepped: Sequence[bool] = ()) -> tuple[Task, ...]:
    """Return tasks with the cycles the host and the accelerator take around them.

    Parameters
    ----------
    tasks
        In order.
    npu
        For `hand_over`. With its sequencer on (`epoch_controller`), the host launches only the
        first of the tasks that follow one another, and takes the interrupt of the last.
    stepped
        Whether the host steps a task, which no sequencer then runs; none unless given.
    """
    hosted = [task.on_host or step for task, step in zip(
        tasks, stepped or [False] * len(tasks), strict=True)]
    linked = [npu.epoch_controller and not (one or other)
              for one, other in itertools.pairwise(hosted)]
    return tuple(_launch(task, npu, follows, leads, own) for task, follows, leads, own in zip(
        tasks, [False, *linked], [*linked, False], hosted, strict=True))


def _launch(task: Task, npu: Npu, follows: bool, leads: bool, hosted: bool) -> Task:
    prices = npu.hand_over
    pre, post = launch_cycles(task, npu)
    if npu.epoch_controller and not hosted:
        if prices.controller_pre_cycles is not None:
            pre = round(prices.controller_pre_cycles)
        if prices.controller_post_cycles is not None:
            post = round(prices.controller_post_cycles)
    start = round(npu.controller_word_cycles * count_controller_words(task, npu)) if follows else (
        npu.start_cycles)
    return replace(task, start_cycles=0 if task.on_host else start,
                   host_before_cycles=0 if follows else pre,
                   host_after_cycles=0 if leads else post)


def count_controller_words(task: Task, npu: Npu) -> float:
    """Return the words of the sequencer's program that set a task up and take it down."""
    words = dict(npu.controller_words)
    parts = {"task": 1, "engine": len(task.transfers),
             "unit": sum(work.count for work in task.units),
             "value": sum(work.coefficients for work in task.units)}
    return sum(words.get(part, 0.0) * count for part, count in parts.items())


def launch_cycles(task: Task, npu: Npu) -> tuple[int, int]:
    """Return host cycles before and after a task, by the equation of the module."""
    prices, channels = npu.hand_over, len(task.transfers)
    if not channels:
        return round(prices.software_cycles), 0
    pre = prices.pre_cycles + prices.pre_engine_cycles * channels
    pre += prices.pre_coefficient_cycles * sum(work.coefficients for work in task.units)
    post = prices.post_cycles + prices.post_engine_cycles * channels
    pre_unit, post_unit = dict(prices.pre_unit_cycles), dict(prices.post_unit_cycles)
    further = pre_unit | dict(prices.pre_further_unit_cycles)
    for kind, count in sum_by_key((work.kind, work.count) for work in task.units).items():
        pre += pre_unit.get(kind, 0.0) + further.get(kind, 0.0) * (count - 1)
        post += post_unit.get(kind, 0.0) * count
    return round(pre), round(post)
