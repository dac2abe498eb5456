"""Layers, functions and causes as flames: a picture, or a file for speedscope."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.quantities import format_frequency, format_time
from twin.errors import UsageError
from twin.pricing.calibrated import apply_factors
from twin.pricing.calibration import AUTO, NONE, choose_kernel_prices
from twin.pricing.ledger import bill_time_us
from twin.pricing.lines import runtime_prices
from twin.pricing.prediction import Prediction
from twin.reports.export import check_place, write_file
from twin.reports.flamegraph import draw_flamegraph

SUFFIXES = (".svg", ".json")


def list_costs(prediction: Prediction) -> tuple[Any, ...]:
    """Return what every function of a program costs in every layer.

    Raises
    ------
    UsageError
        For a prediction of a network, which has layers and no functions.
    """
    deployment = prediction.deployment
    target: Any = deployment.target
    if not target.executes:
        raise UsageError(f"{deployment.graph.name}: a network, not a program; accepted: "
                         "`twin predict --elf`")
    times = choose_kernel_prices(deployment, NONE if prediction.certainty is None else AUTO)
    if times:
        deployment = apply_factors(deployment, times, {})
    found: tuple[Any, ...] = target.price_functions(
        deployment, runtime_prices(deployment), cold=prediction.temperature == "cold")
    return found


def check_flames(path: str | Path) -> None:
    """Refuse a file that could not be written, before anything is computed."""
    if Path(path).suffix not in SUFFIXES:
        raise UsageError(f"{path}: accepted: a name that ends in .svg or .speedscope.json")
    check_place(path)


def list_stacks(prediction: Prediction) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield (program, layer, function, cause) and its cycles of the core, in order."""
    deployment = prediction.deployment
    clock = deployment.board.core.clock
    for cost in list_costs(prediction):
        for cause in cost.bill.causes():
            cycles = round(cost.bill.cycles(clock, cause))
            if cycles:
                yield ((deployment.graph.name, prediction.layers[cost.layer].name, cost.run.name,
                        cause), cycles)


def list_layer_stacks(prediction: Prediction) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield (network, layer, cause) and its nanoseconds, of all clocks, in order."""
    for layer in prediction.layers:
        for cause in layer.bill.causes():
            spent = round(1e3 * bill_time_us(prediction, layer.bill, cause))
            if spent:
                yield (prediction.graph.name, f"{layer.index} {layer.op}", cause), spent


def make_speedscope(prediction: Prediction) -> JsonObject:
    """Return the stacks as speedscope reads them.

    Notes
    -----
    The format has no unit for cycles: of a program there are two profiles, in time and, by its
    name, in cycles.

    References
    ----------
    https://www.speedscope.app/file-format-schema.json: a profile of type "sampled".
    """
    deployment = prediction.deployment
    frames: dict[str, int] = {}
    samples, weights = [], []
    program = deployment.target.executes
    for stack, amount in (list_stacks if program else list_layer_stacks)(prediction):
        samples.append([frames.setdefault(name, len(frames)) for name in stack])
        weights.append(amount)
    name = deployment.graph.name
    profiles = [_make_profile(name, "nanoseconds", samples, weights)]
    if program:
        hertz = deployment.board.core_clock.frequency_hz
        profiles = [
            _make_profile(f"{name}, cycles", "none", samples, weights),
            _make_profile(f"{name}, time at {format_frequency(hertz)}", "nanoseconds", samples,
                          [round(1e9 * cycles / hertz) for cycles in weights])]
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name} for name in frames]}, "profiles": profiles,
        "activeProfileIndex": len(profiles) - 1, "exporter": "twin"}


def _make_profile(name: str, unit: str, samples: list[list[int]], weights: list[int]) -> JsonObject:
    return {"type": "sampled", "name": name, "unit": unit, "startValue": 0,
            "endValue": sum(weights), "samples": samples, "weights": weights}


def write_function_flames(prediction: Prediction, path: str | Path) -> Path:
    """Write the stacks as a picture (.svg) or for speedscope (.json); returns the file."""
    if Path(path).suffix == ".json":
        return write_file(path, json.dumps(make_speedscope(prediction)).encode() + b"\n")
    stacks = [f"{';'.join(name.replace(';', ':') for name in stack)} {cycles}\n"
              for stack, cycles in list_stacks(prediction)]
    board = prediction.board
    hertz = board.core_clock.frequency_hz
    return write_file(path, draw_flamegraph(
        stacks, unit=f"cycles at {format_frequency(hertz)}",
        title=f"{prediction.graph.name} on {board.name}, {prediction.temperature} "
              f"caches: {format_time(prediction.time_us)}",
        levels="from below: program, layers in order, their functions, causes").encode())
