"""The Python interface: the lines of docs/python.md, and that they say what the commands say."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import twin
from calibration.measurement.measurement import Measurement, write_measurement
from calibration.measurement.sample import Header, Sample
from twin.deployment.deploy import deploy
from twin.errors import UsageError
from twin.pricing.calibrated import predict_calibrated

LINES = Path(__file__).parents[3] / "docs" / "python.md"
SLOWER = 1.25


@pytest.fixture(scope="module")
def image():
    """What `twin measure` measures: our own kernels."""
    return deploy("ad", "nucleo_l4r5zi", runtime="firmware")


@pytest.fixture(scope="module")
def where(tmp_path_factory, image) -> Path:
    """A folder with measurements out/m and out/n: every layer slower than its stated prices say."""
    stated = twin.predict(image, calibration="none")
    header = Header(
        kind="measured", model="ad", board="nucleo_l4r5zi", runtime=image.runtime.identity,
        temperature="warm", source="made by this test", clocks_hz=(("cpu", 120e6),),
        architecture_id=image.graph.architecture_id)
    layers = [(layer.index, layer.cycles) for layer in stated.layers if layer.cycles]
    samples = tuple(Sample(run=run, layer=layer, counter="cpu_cycles", clock="cpu",
                           unit="cycles", value=float(round(SLOWER * cycles)))
                    for run in range(3)
                    for layer, cycles in [*layers, (None, sum(count for _, count in layers))])
    folder = tmp_path_factory.mktemp("python")
    for name in ("m", "n"):
        write_measurement(folder / "out" / name / "warm",
                          Measurement(header=header, samples=samples))
    return folder


def test_the_lines_of_the_page_run(where, monkeypatch, capsys) -> None:
    page = LINES.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in page if line.startswith("    ") or not line)
    names: dict[str, object] = {}
    monkeypatch.chdir(where)
    exec(compile(textwrap.dedent(text), "python.md", "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) == text.count("print(")
    stated = twin.predict(names["image"], calibration="none")
    measured_us = SLOWER * stated.time_us
    own, shipped = names["own"], twin.predict(names["image"])
    assert abs(own.time_us / measured_us - 1) < 0.02 < abs(shipped.time_us / measured_us - 1)
    ported = names["ported"].prediction
    assert ported.certainty.time_us.holds(ported.time_us)
    total = twin.attribute(own, "out/m").difference.main.total
    assert total.second == pytest.approx(SLOWER * stated.cycles, rel=1e-4)


def test_predict_chooses_prices_as_the_command_does(image, where) -> None:
    ours, theirs = twin.predict(image), predict_calibrated(image)
    assert (ours.time_us, ours.warnings) == (theirs.time_us, theirs.warnings)
    assert ours.certainty.time_us == theirs.certainty.time_us
    assert twin.predict(image, calibration="none").certainty is None
    overlay = twin.calibrate([where / "out" / "m"], "nucleo_l4r5zi", output=where / "a.yaml")
    learnt = twin.predict(image, calibration=where / "a.yaml")
    assert overlay.entries[0].runtime == image.runtime.identity
    assert "a.yaml" in learnt.certainty.calibration
    # no row has energy: powers are those shipped, and that is said, in the document too
    assert overlay.entries[0].powers_of == "nucleo_l4r5zi" == overlay.entries[0].board
    shipped_uj_per_us = ours.energy_uj / ours.time_us
    assert learnt.energy_uj / learnt.time_us == pytest.approx(shipped_uj_per_us, rel=0.15)
    assert any("powers are as shipped, of nucleo_l4r5zi" in said for said in learnt.warnings)
    document = twin.to_document(learnt)
    assert document["calibration"]["powers"] == "as shipped, of nucleo_l4r5zi"
    assert "powers" not in twin.to_document(ours)["calibration"]
    with pytest.raises(UsageError, match="temperature"):
        twin.predict(image, temperature="hot")


def test_every_name_is_there_and_none_is_loaded_before_its_use() -> None:
    assert all(callable(getattr(twin, name)) for name in twin.__all__)
    code = "import sys, twin; print([name for name in sys.modules if name.startswith('twin.')])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
