"""`twin energy`: a meter's recording of a board with marks becomes energies per layer."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from calibration.measurement import Measurement, read_measurement, write_measurement
from calibration.sample import Header, Sample
from twin.cli import app

TIMES_US, LEVELS_MA, VOLT = (2000.0, 5000.0, 1000.0), (20.0, 35.0, 10.0), 3.0


@pytest.fixture
def folder(tmp_path):
    header = Header(kind="measured", model="m", board="b", runtime="firmware", temperature="warm",
                    source="test", clocks_hz=(("cpu", 1e8),))
    samples = tuple(Sample(run=0, layer=i, counter="cpu_cycles", clock="cpu", unit="cycles",
                           value=t * 100) for i, t in enumerate(TIMES_US))
    write_measurement(tmp_path / "warm", Measurement(header=header, samples=samples))
    return tmp_path / "warm"


def write_ppk2(path, runs: int = 3) -> None:
    """100 kS/s, the mark toggling at each layer's start and at the end."""
    rows, level, time_us = [], 0, 0.0
    plan = [(500.0, 2.0, 0)] + [(t, ma, 1) for _ in range(runs) for t, ma in
                                [*zip(TIMES_US, LEVELS_MA, strict=True), (700.0, 2.0)]]
    for span, ma, toggles in plan:
        level ^= toggles
        for _ in range(int(span / 10)):
            time_us += 10
            rows.append(f"{time_us / 1e3:.2f},{ma * 1e3:.1f},{level}0000000")
    path.write_text("Timestamp(ms),Current(uA),D0-D7\n" + "\n".join(rows) + "\n")


def test_energy_per_layer_from_marks(folder, tmp_path):
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    result = CliRunner().invoke(app, ["energy", str(folder), str(trace), "--meter", "ppk2",
                                      "--supply", str(VOLT)])
    assert result.exit_code == 0, result.stderr
    found = read_measurement(folder.parent / "energy-recording")
    for layer, (span, ma) in enumerate(zip(TIMES_US, LEVELS_MA, strict=True)):
        values = found.values("energy", layer)
        assert len(values) == 3
        assert values == pytest.approx(np.full(3, span * ma * VOLT * 1e-3), rel=0.01)
    whole = sum(t * ma * VOLT * 1e-3 for t, ma in zip(TIMES_US, LEVELS_MA, strict=True))
    assert found.percentile("energy", 50) == pytest.approx(whole, rel=0.01)
    assert found.header.supply_v == VOLT and "inference" in result.stdout
    # the meter's 10 % of the reading are in the interval
    assert found.percentile("energy_sd", 50) == pytest.approx(0.05 * whole, rel=0.1)


def test_refusals(folder, tmp_path):
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    for arguments, code, message in (
            (["--meter", "ppk2"], 3, "give the supply"),
            (["--meter", "ppk2", "--supply", "3", "--by-shape", "--runs", "3"], 2, "--by-shape"),
            (["--meter", "ppk3", "--supply", "3"], 3, "did you mean ppk2")):
        result = CliRunner().invoke(app, ["energy", str(folder), str(trace), *arguments])
        assert result.exit_code == code and message in result.stderr
