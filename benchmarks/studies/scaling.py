"""How far studies scale, and what says so: `python -m benchmarks.studies.scaling`.

Measured here, on processes of this machine: how long tasks of a shipped study are, what a task
takes of Dask's scheduler and of the client, and how much faster two workers are than one with
100,000 predictions a task. From the first three many workers are simulated. Processor time of
tasks is not that of a busy machine; wall time of the two runs is, so the load is told with it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import twin
from tests.oracles.study_workers import WELL, TaskCosts, simulate_efficiency
from twin.studies.study.definition import list_asked
from twin.studies.study.file import find_study, load_study
from twin.studies.study.session import begin_session
from twin.studies.study.tasks import Plan, Task, compute, cut_tasks, make_plan

RESULTS = Path(__file__).parent / "results" / "scaling.md"
STUDY, EMPTY, POINTS, EACH = "hardware", 300, 100_000, 4
WORKERS = (1, 2, 10, 30, 100, 300, 1000, 3000)


def measure_tasks() -> tuple[list[float], list[float]]:
    """Return processor time of tasks of a study, and of keeping their rows."""
    study = load_study(STUDY)
    plan = make_plan(study)
    tasks, took, kept = cut_tasks(plan, list_asked(study)), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        session = begin_session(str(find_study(STUDY)), study, plan, f"{folder}/out", ())
        for task in tasks:
            began = time.process_time()
            rows = compute(plan, task)
            took.append(time.process_time() - began)
            began = time.process_time()
            session.save_rows(task, rows)
            kept.append(time.process_time() - began)
    return took, kept


def do_nothing(plan: Plan, tasks: Sequence[tuple[int, Task]]) -> int:
    """Stand in for a task: it is sent as one is, and takes nothing."""
    return len(tasks)


def predict_points(number: int) -> tuple[float, float]:
    """Predict `POINTS` configurations by one call; returns their mean time, and what it took."""
    draws = np.random.default_rng(number)
    began = time.process_time()
    batch = twin.predict_many(twin.deploy("kws", "nucleo_l4r5zi"), vary={
        "clocks.cpu.frequency_hz": draws.uniform(20e6, 120e6, POINTS),
        "learnt.time.memory": draws.uniform(0.8, 1.25, POINTS)})
    return float(batch.time_us.mean()), time.process_time() - began


@contextmanager
def begin_cluster(workers: int) -> Iterator[Any]:
    """Give the client of a cluster on this machine, encrypted as those of studies are."""
    distributed: Any = import_module("distributed")
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1,
                                  security=distributed.Security.temporary(),
                                  dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.get_client()


def measure_scheduler() -> float:
    """Return processor time each task sent takes of scheduler and client, two workers.

    Both are in this process, one after another, as workers of `begin_cluster` are in others.
    """
    study = load_study(STUDY)
    plan = make_plan(study)
    tasks = cut_tasks(plan, list_asked(study))
    distributed: Any = import_module("distributed")
    with begin_cluster(2) as client:
        def go(count: int) -> float:
            began = time.process_time()
            futures = [client.submit(do_nothing, plan, [(number, tasks[number % len(tasks)])],
                                     pure=False) for number in range(count)]
            for _ in distributed.as_completed(futures, with_results=True):
                pass
            return time.process_time() - began

        go(EMPTY // 10)
        return min(go(EMPTY) for _ in range(3)) / EMPTY


def measure_two() -> list[tuple[float, float]]:
    """Return wall and processor time of the same tasks on one worker and on two.

    Every worker was asked once before: what it imports and simulates once is not counted.
    """
    found = []
    for workers in (1, 2):
        with begin_cluster(workers) as client:
            client.run(predict_points, 0)
            began = time.perf_counter()
            told = client.gather(client.map(predict_points, range(EACH), pure=False))
            found.append((time.perf_counter() - began, sum(took for _, took in told)))
    return found


def tell(costs: TaskCosts, many_s: float, two: Sequence[tuple[float, float]],
         load: float) -> Iterator[str]:
    """Yield the lines of the document."""
    many = TaskCosts(task_s=(many_s,), send_s=costs.send_s, keep_s=costs.keep_s)
    yield "# How far studies scale"
    yield ""
    yield ("Made by `python -m benchmarks.studies.scaling`; processor times, but for the last row: "
           "the machine was shared.")
    yield ""
    yield "| measured | |"
    yield "| --- | --- |"
    yield (f"| a task of `{STUDY}`, counts kept | {costs.mean_s * 1e3:.0f} ms "
           f"({min(costs.task_s) * 1e3:.0f} to {max(costs.task_s) * 1e3:.0f}; "
           f"{len(costs.task_s)} tasks) |")
    yield f"| {POINTS:,} points by one `predict_many` | {many_s:.2f} s |"
    yield f"| a task without work, of scheduler and client | {costs.send_s * 1e3:.2f} ms |"
    yield f"| keeping the rows of a task | {costs.keep_s * 1e3:.2f} ms |"
    (wall, work), (wall_two, work_two) = two
    yield (f"| {EACH} tasks of {POINTS:,} points, one worker and two: processor time of the tasks "
           f"| {work:.1f} s and {work_two:.1f} s: the second costs x{work_two / work:.2f} |")
    yield (f"| the same, by the clock on the wall | {wall:.1f} s and {wall_two:.1f} s: "
           f"{wall / (2 * wall_two):.2f} of linear, at a load of {load:.1f} on {os.cpu_count()} "
           "cores |")
    yield ""
    yield ("Simulated: efficiency, speed over linear, with each "
           "task sent alone; a study sends up to 16 at once where there are many.")
    yield ""
    yield f"| workers | tasks of `{STUDY}` | tasks of {POINTS:,} points |"
    yield "| --- | --- | --- |"
    for workers in WORKERS:
        one, other = (simulate_efficiency(each, workers) for each in (costs, many))
        yield f"| {workers:,} | {one:.2f} | {other:.2f} |"
    yield ""
    for name, each in ((f"tasks of `{STUDY}`", costs), (f"tasks of {POINTS:,} points", many)):
        slower, most = max(each.send_s, each.keep_s), max(
            n for n in range(1, 401) if simulate_efficiency(each, n) >= WELL)
        yield (f"- {name} keep {WELL} of linear up to {most} workers (of 400 tried): "
               f"{each.mean_s * 1e3:,.0f} ms of work for each {slower * 1e3:.2f} ms of "
               f"{'the client' if each.keep_s > each.send_s else 'the scheduler'}, which beyond "
               f"{each.mean_s / slower:,.0f} workers is always busy. 1,000 workers at "
               f"that share need tasks of {1000 * WELL * slower:.1f} s.")


def main() -> None:
    """Measure, simulate and write."""
    load = os.getloadavg()[0]
    took, kept = measure_tasks()
    many_s = min(predict_points(number)[1] for number in range(3))
    costs = TaskCosts(task_s=tuple(took), send_s=measure_scheduler(), keep_s=sum(kept) / len(kept))
    text = "\n".join(tell(costs, many_s, measure_two(), load)) + "\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
