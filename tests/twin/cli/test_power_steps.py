"""Steps of power: a made recording of micro-benchmarks, through `twin energy`."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from calibration.measurement.measurement import Measurement, read_measurement, write_measurement
from calibration.measurement.sample import Header, Sample
from calibration.microbench.probes import PROBES_KEY, RUNTIME, pack_probes, probe_layers, read_power
from hwmodels.board.file import load_board
from twin.cli import app
from twin.learning.portability.probes import STEP_S, choose_benchmarks, find_rooms

HERTZ, IDLE_MW, COST = 120e6, 3.0, 2.0
LEVELS_MW = (11.0, 24.0, 21.0, 14.0)
"""Planted: looping, computing, loading, waiting for the flash."""


def make_run(board):
    """A measurement of the power plan and the durations of its layers, in microseconds."""
    (plan,) = choose_benchmarks(["power"], board, find_rooms(board))
    samples, spans = [Sample(run=0, layer=0, counter="cpu_cycles", clock="cpu", unit="cycles",
                             value=12000)], [(100.0, 5.0)]
    for number, probe in enumerate(plan.probes):
        for layer, laps in zip(probe_layers(number), (probe.few, probe.many), strict=True):
            cycles = COST * probe.units * laps
            samples.append(Sample(run=0, layer=layer, counter="cpu_cycles", clock="cpu",
                                  unit="cycles", value=cycles))
            spans.append((cycles / HERTZ * 1e6, LEVELS_MW[number]))
    header = Header(kind="measured", model=RUNTIME, board=board.name, runtime=RUNTIME,
                    temperature="warm", source="test", clocks_hz=(("cpu", HERTZ),),
                    environment=((PROBES_KEY, pack_probes(plan.probes)),))
    return plan, Measurement(header=header, samples=tuple(samples)), spans


def write_recording(path, spans, period_us=50.0):
    """A Joulescope CSV: current at 1.8 V, and the mark on an input, toggled at every layer."""
    lead_us = 20000.0
    edges = lead_us + np.concatenate(([0.0], np.cumsum([span for span, _ in spans])))
    time_us = np.arange(0, edges[-1] + lead_us, period_us)
    place = np.searchsorted(edges, time_us, side="right")
    levels = np.array([IDLE_MW, *(level for _, level in spans), IDLE_MW])
    pin = np.where((place > 0) & (place <= len(spans)), place % 2, 0)
    rows = [f"{t * 1e-3:.3f},{levels[p] / 1.8 * 1e3:.4f},{b}"
            for t, p, b in zip(time_us, place, pin, strict=True)]
    path.write_text("Timestamp(ms),Current(uA),D0\n" + "\n".join(rows) + "\n")


def test_planted_steps_come_back(tmp_path):
    board = load_board("nucleo_l4r5zi")
    plan, measured, spans = make_run(board)
    assert [probe.group for probe in plan.probes] == ["loop", "mac", "read", "chase"]
    folder = write_measurement(tmp_path / "warm", measured)
    write_recording(tmp_path / "trace.csv", spans)
    result = CliRunner().invoke(app, ["energy", str(folder), str(tmp_path / "trace.csv"),
                                      "--meter", "ppk2", "--supply", "1.8"])
    assert result.exit_code == 0, result.stderr
    assert "Steps of power" in result.stdout and "idle, outside the marks" in result.stdout
    steps = read_power(measured, read_measurement(tmp_path / "energy-trace"))
    for step, level in zip(steps, LEVELS_MW, strict=True):
        assert step.power_mw == pytest.approx(level, rel=0.01)
        assert step.sd_mw < 0.1 * level  # the gain of the meter is common to both


def test_steps_are_long_enough_for_a_meter_and_only_run_when_asked():
    board = load_board("nucleo_l4r5zi")
    rooms = find_rooms(board)
    (plan,) = choose_benchmarks(["power"], board, rooms)
    for probe in plan.probes:  # at the cycles a unit takes at least
        least = {"loop": 3.0, "mac": 0.5, "read": 0.25, "chase": 8.0}[probe.group]
        assert probe.units * (probe.many - probe.few) * least / 120e6 > STEP_S / 4
    assert "power" not in {one.name for one in choose_benchmarks(["all"], board, rooms)}
