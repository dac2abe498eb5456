"""Measurements of boards with a planted fault, and their diagnosis at stated prices."""

import dataclasses
import functools
import math

import numpy as np
from made_measurements import measure

from twin.attribution.diagnosis import diagnosis as weighing
from twin.attribution.diagnosis.fault_effects import Forecasts
from twin.attribution.diagnosis.faults import BINARY, DECLARED, Fault
from twin.attribution.diagnosis.finding import Diagnosis, Finding
from twin.pricing.inference import predict


@functools.cache
def forecasts_of(network, board, runtime):
    """What was foreseen of a deployment, by all tests of a process."""
    return Forecasts()


def diagnose(deployment, measurement, **more):
    """Diagnose at stated prices: faults here are planted in boards of these."""
    kept = forecasts_of(deployment.graph.sha256, repr(deployment.board),
                        deployment.runtime.identity)
    return weighing.diagnose(deployment, measurement,
                             **{"calibration": "none", "forecasts": kept} | more)


def measure_fault(deployment, fault, *, bias=0.0, seed=0, scatter=0.03, **header):
    """What a board with a fault would send, if the model were right but for a seeded error."""
    random = np.random.default_rng(seed)
    made = predict(fault.deployment or deployment)
    slow = math.exp(fault.slowdown)
    layers = tuple(dataclasses.replace(
        layer, cycles=layer.cycles * slow * math.exp(bias + random.normal(0, scatter)))
        for layer in made.layers)
    whole = dataclasses.replace(made, layers=layers, cycles=sum(one.cycles for one in layers))
    executed = slow * sum(layer.instructions for layer in made.layers)
    clocks = {clock.name: clock.frequency_hz for clock in made.deployment.board.clocks}
    told = {"model": "kws", "runtime": "cmsis-nn@6.0", "clocks_hz": tuple(clocks.items()),
            "architecture_id": deployment.graph.architecture_id,
            "model_sha256": deployment.graph.sha256} | header
    return measure(whole, whole={
        "block_instructions": executed,
        "block_dcache_misses": float(sum(layer.misses for layer in made.layers))}, **told)


def only_cycles(measurement):
    """The cycles of a measurement, as a core without further counters sends them."""
    return dataclasses.replace(measurement, samples=tuple(
        one for one in measurement.samples if one.counter == "cpu_cycles"))


def made_diagnosis(kinds, healthy=False):
    """A diagnosis of these kinds, by probability."""
    return Diagnosis(
        findings=tuple(Finding(
            fault=Fault(kind=kind, name=kind, remedy="mend it"), kind=kind, prior=0.1,
            probability=chance,
            evidence=(), predicted={1: 10.0}) for kind, chance in (*kinds, (DECLARED, 0.0))),
        quantity="cycles", layers=(1,), errors=BINARY, measured=10.0, repeats=0.0, counters=(),
        observations=(), indistinct=(), healthy=healthy)
