"""A log of layers beside a network that runs as tiles on an accelerator."""

import pytest
from typer.testing import CliRunner

import twin
from twin.attribution.views import compare_measured
from twin.cli import app


def test_layers_are_compared_one_by_one(tmp_path):
    prediction = twin.predict(twin.deploy("kws", "gap9evk", runtime="gap"))
    cluster_hz = prediction.deployment.board.npu.frequency_hz
    lines = [f"{layer.op.upper()} took {round(1.25e-6 * layer.time_us * cluster_hz)} ticks (0 ms)."
             for layer in prediction.layers]
    (tmp_path / "log").write_text("\n".join(lines))
    ended = CliRunner().invoke(app, [
        "import", "tflm", str(tmp_path / "log"), "-b", "gap9evk", "--model", "kws", "--runtime",
        "gap", "--clock", "240MHz", "-o", str(tmp_path / "m")])
    assert ended.exit_code == 0, ended.output
    view = compare_measured("kws", "gap9evk", str(tmp_path / "m"), runtime="gap")
    pairs = [(ours.amounts["time"], theirs.amounts["time"])
             for ours, theirs in view.difference.pairing.pairs if ours.amounts["time"]]
    assert len(pairs) == 12  # all but the reshape
    assert [theirs / ours for ours, theirs in pairs] == pytest.approx([1.25] * 12, rel=0.01)
