"""`twin energy`: a meter's recording of a board with marks becomes energies per layer."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from calibration.measurement.measurement import Measurement, read_measurement, write_measurement
from calibration.measurement.sample import Header, Sample
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
    assert "expected" not in result.stderr
    # the meter's 10 % of the reading are in the interval
    assert found.percentile("energy_sd", 50) == pytest.approx(0.05 * whole, rel=0.1)


def test_the_folder_of_a_campaign_and_one_of_ones_own(folder, tmp_path):
    """A header that says uA over numbers of mA is doubted, and the result goes where it is told."""
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    trace.write_text(trace.read_text().replace("(uA)", "(nA)"))
    result = CliRunner().invoke(app, ["energy", str(folder.parent), str(trace), "--meter", "ppk2",
                                      "--supply", str(VOLT), "-o", str(tmp_path / "mine")])
    assert result.exit_code == 0, result.stderr
    assert "Is the unit of the current right?" in result.stderr
    assert read_measurement(tmp_path / "mine").layers == (0, 1, 2)
    result = CliRunner().invoke(app, ["energy", str(tmp_path / "none"), str(trace), "--meter",
                                      "ppk2", "--supply", "3"])
    assert result.exit_code == 2 and "no measurement" in result.stderr


def test_a_window_is_as_long_as_its_inferences(folder, tmp_path):
    """8 ms each as measured; the window holds three and the pauses between them."""
    trace = tmp_path / "window.csv"
    rows = [f"{i / 100:.2f},{20e3:.1f},{int(100 <= i < 2500)}0000000" for i in range(2600)]
    trace.write_text("\n".join(("Timestamp(ms),Current(uA),D0-D7", *rows)) + "\n")
    for runs, unit, code in ((3, "ms", 0), (2, "ms", 3), (5, "ms", 3), (3, "us", 3), (3, "s", 3)):
        text = trace.read_text()
        other = tmp_path / f"window-{runs}-{unit}.csv"
        other.write_text(text.replace("(ms)", f"({unit})"))
        result = CliRunner().invoke(app, ["energy", str(folder), str(other), "--meter", "ppk2",
                                          "--supply", "3", "--runs", str(runs)])
        assert result.exit_code == code, (runs, unit, result.stderr)
        assert code == 0 or "Is the number of runs right" in result.stderr


def test_refusals(folder, tmp_path):
    trace = tmp_path / "recording.csv"
    write_ppk2(trace)
    for arguments, code, message in (
            (["--meter", "ppk2"], 3, "give the supply"),
            (["--meter", "ppk2", "--supply", "3", "--by-shape", "--runs", "3"], 2, "--by-shape"),
            (["--meter", "ppk2", "--supply", "-3"], 3, "supply of -3 V; accepted: above 0"),
            (["--meter", "ppk3", "--supply", "3"], 3, "did you mean ppk2")):
        result = CliRunner().invoke(app, ["energy", str(folder), str(trace), *arguments])
        assert result.exit_code == code and message in result.stderr
