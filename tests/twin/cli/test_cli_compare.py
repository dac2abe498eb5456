"""A log someone has, imported and set beside a prediction, on the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from calibration.measurement.measurement import read_measurement
from twin.cli import app
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict

WHERE = ("-b", "nucleo_l4r5zi")


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


@pytest.fixture(scope="module")
def prediction():
    return predict(deploy("kws", "nucleo_l4r5zi", runtime="tflm-cmsis-nn"))


@pytest.fixture
def log(tmp_path, prediction):
    """TFLite Micro's profiler as it would print twice the predicted cycles, two repetitions."""
    lines = []
    for _ in range(2):
        lines += [f"{layer.op.upper()} took {round(2 * layer.cycles)} ticks "
                  f"({round(2 * layer.time_us / 1e3)} ms)." for layer in prediction.layers] + [""]
    path = tmp_path / "kws.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_log_becomes_what_a_board_would_have_measured(log, tmp_path, prediction):
    folder = tmp_path / "m"
    imported = run("import", "tflm", log, "-o", folder, "--clock", "120MHz", "--model", "kws",
                   "--runtime", prediction.deployment.runtime.identity, *WHERE)
    assert imported.exit_code == 0, imported.output
    assert "measured: 2 runs, 13 layers" in imported.stdout and "not understood" not in \
        imported.stderr
    found = read_measurement(folder)
    assert found.header.model_sha256 == prediction.deployment.graph.sha256
    assert found.percentile("latency", 50, 2) == pytest.approx(2 * prediction.layers[2].time_us,
                                                                rel=1e-5)
    compared = run("compare", "kws", *WHERE, "--runtime", prediction.deployment.runtime.identity,
                   "--measured", folder, "--calibration", "none", "--plot", tmp_path / "m.png")
    assert compared.exit_code == 0, compared.output
    total = next(line.split() for line in compared.stdout.splitlines()
                 if line.startswith("total"))
    assert float(total[-1]) == pytest.approx(0.5, abs=1e-3)
    assert "n = 13" in compared.stdout and (tmp_path / "m.png").stat().st_size > 10_000


def test_the_same_log_is_not_taken_twice(log, tmp_path):
    folder = tmp_path / "m"
    assert run("import", "tflm", log, "-o", folder).exit_code == 0
    samples = (folder / "samples.jsonl").read_bytes()
    again = run("import", "tflm", log, "-o", folder)
    assert again.exit_code == 3 and "has run 0 to 1 already" in again.stderr
    assert (folder / "samples.jsonl").read_bytes() == samples


@pytest.mark.parametrize(("arguments", "why"), [
    (("ic", *WHERE), "it lists 13 operators, ic has"),
    (("kws", "-b", "nucleo_u575zi_q"),
     "board: nucleo_u575zi_q -> nucleo_l4r5zi; predict with -b nucleo_l4r5zi"),
])
def test_a_log_of_something_else_is_refused_unless_asked(log, tmp_path, arguments, why):
    folder = tmp_path / "m"
    run("import", "tflm", log, "-o", folder, "--clock", "120MHz", *WHERE)
    refused = run("compare", *arguments, "--measured", folder)
    assert refused.exit_code == 3 and why in refused.stderr and not refused.stdout
    assert run("compare", *arguments, "--measured", folder, "--anyway").exit_code == 0


def test_what_was_left_out_is_said_and_cut_logs_are_refused(log, tmp_path):
    text = log.read_text(encoding="utf-8")
    log.write_text("boot\n" + text, encoding="utf-8")
    imported = run("import", "tflm", log, "-o", tmp_path / "a", "-b", "no_such_board")
    assert "1 of 27 lines omitted, not understood: line 1: 'boot'" in imported.stderr
    assert "no board file is known for 'no_such_board'" in imported.stderr
    log.write_text(text[:len(text) * 3 // 4], encoding="utf-8")
    refused = run("import", "tflm", log, "-o", tmp_path / "b")
    assert refused.exit_code == 3 and "not complete" in refused.stderr
    assert not (tmp_path / "b").exists()
    assert run("import", "tflm", log, "-o", tmp_path / "b", "--partial").exit_code == 0
    header = json.loads((tmp_path / "b" / "header.json").read_text())
    assert "partial" in header["environment"]["remarks"]
    compared = run("compare", "kws", *WHERE, "--measured", tmp_path / "b", "--anyway")
    assert compared.exit_code == 2 and "ticks become times" in compared.stderr


@pytest.mark.parametrize(("arguments", "code"), [
    ((), 2), (("--published", "--measured", "x"), 2), (("--measured", "nowhere"), 2),
    (("--published", "--clock", "80MHz"), 2), (("--measured", "nowhere", "--plot", "x.txt"), 2),
])
def test_what_cannot_be_compared_is_refused(arguments, code):
    result = run("compare", "kws", *WHERE, *arguments)
    assert result.exit_code == code, result.output
