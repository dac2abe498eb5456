"""The compiled kernel, the kernel interpreted, and the SimPy specification agree tick by tick."""

import os
import random
from dataclasses import replace

import npu_cases
import numpy as np
import pytest

from hwmodels.kernels import npu_lanes, npu_streams
from hwmodels.kernels.compiled import INTERPRETED
from hwmodels.schedule.machine import lay_out
from hwmodels.schedule.table import read_transfers, read_units
from hwmodels.schedule.timing import plan_task, plan_tasks
from hwmodels.schedule.traffic import count_traffic

FEW = 40 * bool(INTERPRETED or os.environ.get("NUMBA_BOUNDSCHECK"))
"""Epochs where loops run as Python or with every index checked: beside all, compiled."""

simpy = pytest.importorskip("simpy", reason="the specification needs the extra 'test'")


def plan_case(seed):
    rng = random.Random(seed)
    npu, epoch = npu_cases.make_npu(rng), npu_cases.make_epoch(rng)
    return plan_task(epoch, npu)


@pytest.mark.parametrize("seeds", [range(n, n + 20) for n in range(0, FEW or 120, 20)], ids=str)
def test_kernel_equals_specification(seeds):
    from benchmarks.oracles.npu import ReferenceEpoch
    for seed in seeds:
        plan = plan_case(seed)
        log, ticks, blame = npu_streams.run_streams(plan.nodes, plan.links, len(plan.channels),
                                                    len(plan.pools))
        reference = ReferenceEpoch(plan)
        assert reference.run() == ticks
        for node, steps in enumerate(plan.nodes[:, 0]):
            assert reference.starts[node] == log[node, :steps, npu_streams.START].tolist(), seed
            assert reference.ends[node] == log[node, :steps, npu_streams.END].tolist(), seed
        assert blame.min() >= 0 and blame.sum() == ticks


def test_kernel_interpreted_equals_compiled(monkeypatch):
    plan = plan_case(3)
    arguments = (plan.nodes, plan.links, len(plan.channels), len(plan.pools))
    log, ticks, blame = npu_streams.run_streams(*arguments)
    monkeypatch.setattr(npu_streams, "start_steps", npu_streams.start_steps.py_func)
    plain_log, plain_ticks, plain_blame = npu_streams.run_streams(*arguments)
    assert plain_ticks == ticks
    assert (plain_log == log).all() and (plain_blame == blame).all()


def plan_machines(seed, machines, spread):
    """An epoch, an empty one and another on machines whose pools are of other clocks."""
    rng = random.Random(seed)
    npu = npu_cases.make_npu(rng)
    one, other = npu_cases.make_epoch(rng), npu_cases.make_epoch(rng)
    factors = np.array([1 + spread * rng.random() for _ in range(machines)])
    many = lay_out(replace(npu, pools=tuple(
        replace(pool, clock_ratio=pool.clock_ratio * factors) for pool in npu.pools)))
    epochs = [one, replace(one, transfers=(), units=(), links=()), other]
    engines = read_transfers(epochs, many)
    return plan_tasks(epochs, engines, read_units(epochs, many), count_traffic(engines, many),
                       many)


def equals_alone(plan):
    """Whether machines in SIMD lanes do what each does alone, to the tick."""
    until, blame = npu_lanes.run_machines(plan.spans, plan.nodes, plan.links, plan.ports)
    for place, nodes in enumerate(plan.nodes):
        _, ticks, alone = npu_streams.run_epochs(plan.spans, nodes, plan.links, plan.ports)
        assert until[place].tolist() == ticks.tolist()
        assert (blame[place] == alone).all()
    return True


@pytest.mark.parametrize("spread", [0, 1e-6, 1e-3, 0.1, 10])
def test_machines_batched_equal_each_alone(spread):
    seeds, machines = (2, 3) if FEW else (40, 75)
    for seed in range(seeds):
        assert equals_alone(plan_machines(seed, machines, spread)), seed


def test_machines_batched_interpreted_equal_each_alone(monkeypatch):
    monkeypatch.setattr(npu_lanes, "start_machines", npu_lanes.start_machines.py_func)
    assert equals_alone(plan_machines(5, 4, 0.1))
