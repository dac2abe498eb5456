"""Whatever is offloaded: the parts sum, nothing is free, and handing over costs something."""

import dataclasses
import math
import random

import pytest

from hwmodels.board.file import change_board, load_board
from hwmodels.schedule.run import run_tasks
from twin.deployment.costs import HAND_OVER_EVENTS
from twin.deployment.deploy import deploy
from twin.network import zoo
from twin.pricing.inference import predict

# Caches off, so that a layer costs the same whatever ran before it.
BOARD = change_board(load_board("stm32n6570_dk"), {
    "caches.l1d.enabled": "false", "caches.l1i.enabled": "false"})
CACHED = load_board("stm32n6570_dk")
NETWORKS = {name: zoo.build(name) for name in ("kws", "ic", "ad")}


def offload(name, board, seed, **settings):
    """A network with a random choice of layers kept on the host."""
    graph, chooser = NETWORKS[name], random.Random(seed)
    kept = [str(layer.index) for layer in graph.layers if chooser.random() < chooser.random()]
    changes = {"offload.host": ",".join(kept), **settings}
    return deploy(graph, board, runtime="neural-art").replace(changes)


def on_core_alone(deployment):
    """The same network and kernels, everything on the host core."""
    alone = dataclasses.replace(deployment.runtime, offload=None, target="core")
    return dataclasses.replace(deployment, runtime=alone, host=())


CASES = [(name, seed, controller) for name in NETWORKS for seed in range(2)
         for controller in ("false", "true")]


@pytest.mark.parametrize(("name", "seed", "controller"), CASES)
def test_total_is_npu_and_host_operators_and_hand_over(name, seed, controller):
    deployment = offload(name, BOARD, seed, **{"npu.epoch_controller": controller})
    prediction = predict(deployment)
    core_us = sum(run.core_npu_cycles for run in run_tasks(
        [step.task for step in deployment.plan.steps if step.task], deployment.board.npu)) / 1e3
    alone = predict(on_core_alone(deployment))
    host_us = math.fsum(alone.layers[position].time_us for step in deployment.plan.steps
                        if step.kind == "host" for position in step.layers)
    hand_over_us = math.fsum(line.cycles / 800 for line in prediction.bill.lines
                             if line.event in HAND_OVER_EVENTS)
    assert hand_over_us > 0
    assert prediction.time_us == pytest.approx(core_us + host_us + hand_over_us, rel=1e-9)
    covered = prediction.coverage
    assert (covered.npu_us, covered.host_us, covered.hand_over_us) == pytest.approx(
        (core_us, host_us, hand_over_us), rel=1e-9, abs=1e-9)
    assert math.fsum(covered.shares) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_no_layer_is_free_unless_it_only_renames(seed):
    prediction = predict(offload("ic", CACHED, seed))
    for layer in prediction.layers:
        assert (layer.time_us == 0) == layer.alias, layer.name


@pytest.mark.parametrize("seed", range(2))
def test_layers_and_epochs_sum_to_the_same_total(seed):
    prediction = predict(offload("kws", CACHED, seed))
    layers = math.fsum(layer.time_us for layer in prediction.layers)
    epochs = math.fsum(epoch.time_us for epoch in prediction.tasks)
    assert layers == pytest.approx(prediction.time_us, rel=1e-12)
    assert epochs == pytest.approx(prediction.time_us, rel=1e-12)
    last = prediction.tasks[-1]
    assert last.start_us + last.time_us == pytest.approx(prediction.time_us, rel=1e-12)


def test_cycles_of_two_clocks_are_never_added():
    prediction = predict(deploy("kws", CACHED, runtime="neural-art"))
    cpu, npu = prediction.bill.cycles("cpu"), prediction.bill.cycles("npu")
    assert cpu > 0 and npu > 0
    assert prediction.cycles in (cpu, npu)
    assert prediction.time_us == pytest.approx(cpu / 800 + npu / 1000)


def test_keeping_more_on_the_host_costs_more_hand_over():
    whole = predict(deploy("ic", CACHED, runtime="neural-art"))
    split = predict(deploy("ic", CACHED, runtime="neural-art").replace(
        {"offload.host": "add"}))
    maintained = [sum(line.cycles for line in p.bill.lines if line.event == "cache_clean")
                  for p in (whole, split)]
    assert maintained[1] > maintained[0]
    assert len(split.tasks) > len(whole.tasks)


def test_the_epoch_controller_takes_the_host_out_between_epochs():
    off = predict(deploy("ic", CACHED, runtime="neural-art"))
    on = predict(deploy("ic", CACHED, runtime="neural-art").replace(
        {"npu.epoch_controller": "true"}))
    kinds = ("hw", "copy")
    pre = [sum(e.pre_cpu_cycles > 0 for e in p.tasks if e.kind in kinds) for p in (off, on)]
    hardware = sum(e.kind in kinds for e in off.tasks)
    assert pre[0] == hardware and 0 < pre[1] < hardware
    assert on.time_us < off.time_us
