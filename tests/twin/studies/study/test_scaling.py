"""The simulation of many workers: against closed forms, and where it stops scaling."""

from __future__ import annotations

import pytest

from twin.errors import UsageError
from twin.studies.study.workers import TaskCosts, find_most_workers, simulate_workers


@pytest.mark.parametrize(("workers", "tasks", "send_s", "keep_s", "seconds"), [
    (1, 10, 0.0, 0.0, 10 * 2.0),          # one after another
    (1, 10, 0.5, 0.25, 0.5 + 10 * 2.0 + 0.25),  # sending and keeping hide behind work
    (5, 10, 0.0, 0.0, 2 * 2.0),
    (100, 50, 0.5, 0.0, 50 * 0.5 + 2.0),  # the scheduler is the bottleneck
    (100, 50, 0.0, 0.5, 2.0 + 50 * 0.5),  # the client is
    (2, 4, 0.5, 0.0, 0.5 + 2.0 + 0.5 + 2.0)])  # the second worker begins half a second later
def test_times_are_those_of_the_closed_form(workers, tasks, send_s, keep_s, seconds) -> None:
    costs = TaskCosts(task_s=(2.0,), send_s=send_s, keep_s=keep_s)
    found = simulate_workers(costs, workers, tasks)
    assert found.seconds == pytest.approx(seconds)
    assert found.efficiency == pytest.approx(2.0 * tasks / (workers * seconds))


def test_it_stops_scaling_where_one_station_is_always_busy() -> None:
    costs = TaskCosts(task_s=(0.5, 1.5), send_s=0.001, keep_s=0.004)
    assert costs.most_workers == pytest.approx(250)
    most = find_most_workers(costs, most=1000)
    assert 0.7 * 250 < most < 1.3 * 250
    assert simulate_workers(costs, 1000).efficiency == pytest.approx(0.25, rel=0.1)
    longer = TaskCosts(task_s=(50.0, 150.0), send_s=0.001, keep_s=0.004)
    assert find_most_workers(longer, most=100) == 100
    assert find_most_workers(TaskCosts(task_s=(1e-6,), send_s=1.0, keep_s=0.0), most=8) == 0


def test_what_means_nothing_is_refused() -> None:
    costs = TaskCosts(task_s=(1.0,), send_s=0.0, keep_s=0.0)
    for workers, tasks in ((0, None), (1, 0), (10**9, 1)):
        with pytest.raises(UsageError, match="workers"):
            simulate_workers(costs, workers, tasks)
    with pytest.raises(UsageError, match="none below 0"):
        simulate_workers(TaskCosts(task_s=(), send_s=0.0, keep_s=0.0), 1)
    with pytest.raises(UsageError, match="above 0 and below 1"):
        find_most_workers(costs, 1.0)
