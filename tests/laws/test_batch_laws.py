"""Many predictions at once equal `predict` of each, over random boards, networks and paths."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from made_batches import check_row
from plain_pricing import bound_offloaded_plainly, bound_plainly, price_plainly

import twin
from hwmodels.board.file import list_boards
from twin.errors import PlacementError, RuntimeRefusedError
from twin.pricing.calibrated import apply_calibration, apply_factors, predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.inference import predict
from twin.pricing.price_names import ENERGY_PRICES, TIME_PRICES

EXAMPLE = Path(__file__).parents[2] / "examples" / "another-accelerator"
NETWORKS = ("kws", "ad", "sww", "ic", "lstm", "mobilenet_v2_0.35_96")
RUNTIMES = ("tflm-cmsis-nn@2026", "tflm-cmsis-nn", "cmsis-nn", "x-cube-ai@8", "tflm-reference",
            None)


def deploy_any(rng: random.Random):
    """Some network on some board under some library of its core."""
    while True:
        try:
            found = twin.deploy(rng.choice(NETWORKS), rng.choice(list_boards()),
                                runtime=rng.choice(RUNTIMES))
        except (PlacementError, RuntimeRefusedError, twin.TwinError):
            continue
        if not found.accelerated:
            return found


def choose_paths(rng: random.Random, deployment) -> dict[str, list]:
    """Values of some paths, five rows each."""
    board, rows = deployment.board, 5
    paths: dict[str, list] = {}
    if rng.random() < 0.8:
        own = [clock.name for clock in board.clocks
               if f"clocks.{clock.name}.frequency_hz" in {fact.path for fact in board.facts}]
        clock = board.clock(rng.choice(own))
        paths[f"clocks.{clock.name}.frequency_hz"] = [
            clock.frequency_hz * rng.choice((0.1, 0.3, 0.55, 0.81, 1.0, 1.4)) for _ in range(rows)]
    if board.caches and rng.random() < 0.5:
        cache = rng.choice(board.caches)
        paths[f"caches.{cache.name}.replacement"] = [
            rng.choice(("lru", "round_robin", "lfsr")) for _ in range(rows)]
    if rng.random() < 0.3:
        flash = [memory.name for memory in board.memories if memory.role == "flash"]
        if flash:
            paths[f"memories.{flash[0]}.wait_states"] = [rng.randint(0, 9) for _ in range(rows)]
    if rng.random() < 0.3:
        paths["supply.voltage_v"] = [rng.choice((1.8, 2.5, 3.0, 3.3)) for _ in range(rows)]
    for kind, prices in (("time", TIME_PRICES), ("energy", ENERGY_PRICES)):
        for price in rng.sample(prices, rng.randint(0, 3)):
            paths[f"learnt.{kind}.{price}"] = [rng.uniform(0.3, 3) for _ in range(rows)]
    return paths or {"learnt.time.call": [1.0] * rows}


def predict_row(base, paths, row, calibration, temperature):
    """What `predict` says of a row, at its own factors."""
    deployment = base.replace({name: values[row] for name, values in paths.items()
                               if not name.startswith("learnt.")})
    time, energy = ({price: paths[f"learnt.{kind}.{price}"][row] for price in prices
                     if f"learnt.{kind}.{price}" in paths}
                    for kind, prices in (("time", TIME_PRICES), ("energy", ENERGY_PRICES)))
    chosen = choose_calibration(deployment, calibration)
    if chosen is None:
        wanted = calibration if deployment.accelerated else None  # it has intervals of its own
        return predict_calibrated(apply_factors(deployment, time, energy), calibration=wanted,
                                  temperature=temperature)
    estimates = {}
    for name, factors, estimate in (("time", time, chosen.time), ("energy", energy,
                                                                  chosen.energy)):
        if estimate is not None:
            log = [np.log(factors[price]) if price in factors else own
                   for price, own in zip(estimate.names, estimate.log, strict=True)]
            estimates[name] = dataclasses.replace(estimate, log=np.array(log))
    return predict_calibrated(deployment, temperature=temperature,
                              calibration=dataclasses.replace(chosen, **estimates))


COVERING = (0, 1, 2, 4, 5, 7, 12, 14, 15, 16, 17, 24, 26, 27, 29)
"""Of thirty seeds those that have each network, core, library, kind of path and of prices."""


@pytest.mark.parametrize("case", COVERING)
def test_every_row_is_its_prediction(case) -> None:
    rng = random.Random(case)
    base = deploy_any(rng)
    paths = choose_paths(rng, base)
    calibration = rng.choice(("auto", "auto", "none"))
    if choose_calibration(base, calibration) is not None and choose_calibration(
            base, calibration).energy is None:
        paths = {name: values for name, values in paths.items() if "energy" not in name}
    temperature = rng.choice(("warm", "warm", "cold"))
    batch = twin.predict_many(base, vary=paths, calibration=calibration, layers=True,
                              temperature=temperature, errors="keep")
    refused = {one.row: str(one.error) for one in batch.failures}
    for row in range(len(batch)):
        try:
            made = predict_row(base, paths, row, calibration, temperature)
        except twin.TwinError as error:
            assert refused.pop(row) == str(error)
            assert np.isnan(batch.time_us[row]) and batch.ram_bytes[row] == -1
            continue
        check_row(batch, row, made)
    assert not refused


@pytest.mark.parametrize("case", range(20))
def test_a_prediction_is_what_is_priced_plainly(case) -> None:
    """Counts equal, costs and intervals to 1e-12: kernel by kernel, and all of them as arrays."""
    rng = random.Random(1000 + case)
    deployment = deploy_any(rng)
    temperature = rng.choice(("warm", "cold"))
    time, power = ({price: rng.uniform(0.3, 3) for price in rng.sample(prices, 3)}
                   for prices in (TIME_PRICES, ENERGY_PRICES))
    varied = apply_factors(deployment, time, power)
    made = predict(varied, temperature=temperature)
    plain = price_plainly(varied, cold=temperature == "cold")
    for layer, (counts, bill) in zip(made.layers, plain, strict=True):
        assert layer.counts == counts
        for line, wanted in zip(layer.bill.lines, bill.lines, strict=True):
            assert (line.event, line.place, line.operand, line.occurred, line.exposed) == (
                wanted.event, wanted.place, wanted.operand, pytest.approx(
                    wanted.occurred, rel=1e-12), wanted.exposed)
            assert line.cycles == pytest.approx(wanted.cycles, rel=1e-12)
            assert line.energy_pj == (None if wanted.energy_pj is None else pytest.approx(
                wanted.energy_pj, rel=1e-12))
    chosen = choose_calibration(deployment)
    if chosen is None:
        return
    learnt = predict_calibrated(deployment, temperature=temperature)
    check_bounds(learnt.certainty, *bound_plainly(dataclasses.replace(
        learnt, deployment=apply_calibration(deployment, chosen)), chosen))


def check_bounds(certainty, times, energies) -> None:
    """Demand the intervals of an inference and of its layers."""
    for found, time_us, energy_uj in zip([certainty, *certainty.layers], times, energies,
                                         strict=True):
        assert (found.time_us.low, found.time_us.high) == pytest.approx(time_us, rel=1e-12)
        assert (found.energy_uj is None) == (energy_uj is None)
        if energy_uj is not None:
            assert (found.energy_uj.low, found.energy_uj.high) == pytest.approx(
                energy_uj, rel=1e-12)


@pytest.mark.parametrize(("network", "changes"), [
    ("ic", {}), ("vww", {"npu.epoch_controller": "true"}),
    ("kws", {"offload.host": "fully_connected"}), ("sww", {"clocks.npu.frequency_hz": 7.3e8})])
def test_intervals_of_an_accelerator_are_those_bounded_plainly(network, changes) -> None:
    made = predict_calibrated(twin.deploy(network, "stm32n6570_dk", runtime="neural-art").replace(
        changes))
    check_bounds(made.certainty, *bound_offloaded_plainly(made))


@pytest.mark.parametrize("network", ["ic", "sww"])
def test_every_row_on_an_accelerator_is_its_prediction(network) -> None:
    """Clocks, supply voltages and learnt factors; what the clock forbids is told of each row."""
    rng, rows = random.Random(network), 6
    base = twin.deploy(network, "stm32n6570_dk", runtime="neural-art")
    clocks = {"clocks.cpu.frequency_hz": [rng.choice((4e8, 8e8, 9e8)) for _ in range(rows)],
              "clocks.npu.frequency_hz": [rng.choice((5e8, 7.3e8, 1e9)) for _ in range(rows)]}
    factors = {f"learnt.{kind}.{price}": [rng.uniform(0.3, 3) for _ in range(rows)]
               for kind, prices in (("time", TIME_PRICES), ("energy", ENERGY_PRICES))
               for price in prices}
    for paths in (clocks, clocks | factors, {"supply.voltage_v": [1.75, 3.3] * 3} | factors):
        batch = twin.predict_many(base, vary=paths, layers=True, errors="keep")
        refused = {one.row: str(one.error) for one in batch.failures}
        for row in range(rows):
            try:
                made = (twin.predict(base.replace({name: one[row] for name, one in paths.items()}))
                        if paths is clocks else predict_row(base, paths, row, "auto", "warm"))
            except twin.TwinError as error:
                assert refused.pop(row) == str(error)
                continue
            check_row(batch, row, made)
        assert not refused
    alone = twin.predict_many(base, vary={"learnt.time.memory": [1.0]})
    assert alone.energy_uj[0] == pytest.approx(twin.predict(base).energy_uj, rel=1e-12)


UNUSUAL = {"memories.sram.wait_states": 3, "memories.npu_ram.latency.clock": "cpu",
           "memories.sram.latency.clock": "npu", "memories.flash.latency.clock": "nic",
           "npu.pools.octoFlash.read_latency_cycles": 50, "npu.pools.npuRAM3.clock": "nic",
           "npu.epoch_controller": "true", "clocks.noc.divide_by": 4,
           "offload.host": "conv_2d", "memories.sram.clock": "npu"}
"""Latencies in clocks of others, waits, pools and hand-overs no shipped board has."""


@pytest.mark.parametrize("case", range(5))
def test_every_clock_of_an_accelerator_is_a_column(case, monkeypatch) -> None:
    """Rows with clocks of their own, at latencies, waits and factors of every kind."""
    rng, rows = random.Random(case), 5
    monkeypatch.setenv("TWIN_BOARDS", str(EXAMPLE / "boards"))
    monkeypatch.setenv("TWIN_RUNTIMES", str(EXAMPLE / "runtimes"))
    board, runtime = (("tile_evk", "tile-compiler") if case == 4
                      else ("stm32n6570_dk", "neural-art"))
    base = twin.deploy(rng.choice(("ic", "kws", "vww")), board, runtime=runtime)
    if case < 4:
        base = base.replace(dict(rng.sample(sorted(UNUSUAL.items()), 3)))
    own = [clock for clock in base.board.clocks if any(
        fact.path == f"clocks.{clock.name}.frequency_hz" for fact in base.board.facts)]
    paths: dict[str, list] = {f"clocks.{clock.name}.frequency_hz": [
        clock.frequency_hz * rng.uniform(0.2, 1.02) for _ in range(rows)]
        for clock in rng.sample(own, rng.randint(1, len(own)))}
    if case % 2:
        paths["supply.voltage_v"] = [rng.choice((1.8, 2.5, 3.3)) for _ in range(rows)]
    if case > 1:
        paths |= {f"learnt.{kind}.{price}": [rng.uniform(0.3, 3) for _ in range(rows)]
                  for kind, prices in (("time", TIME_PRICES), ("energy", ENERGY_PRICES))
                  for price in rng.sample(prices, 3)}
    calibration = "none" if case == 3 else "auto"
    batch = twin.predict_many(base, vary=paths, layers=True, errors="keep",
                              calibration=calibration)
    refused = {one.row: str(one.error) for one in batch.failures}
    for row in range(rows):
        try:
            made = predict_row(base, paths, row, calibration, "warm")
        except twin.TwinError as error:
            assert refused.pop(row) == str(error)
            continue
        assert (made.certainty is None) == (calibration == "none")
        check_row(batch, row, made)
    assert not refused
