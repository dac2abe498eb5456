"""The compiled kernel, the kernel interpreted, and the SimPy specification agree tick by tick."""

import os
import random

import npu_cases
import pytest

from hwmodels.kernels import npu_streams
from hwmodels.kernels.compiled import INTERPRETED
from hwmodels.schedule.timing import plan_task

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
