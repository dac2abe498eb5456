"""Measurements made of a prediction, and the law their attribution keeps."""

from calibration.measurement.measurement import Measurement
from calibration.measurement.sample import Header, Sample


def measure(prediction, *, factor=1.0, clock_hz=120e6, counters=None, whole=None, layers=None,
            **header):
    """A measurement of a prediction's layers: its cycles times a factor, and further counters."""
    deployment = prediction.deployment
    samples = []

    def add(layer, counter, value, unit="events", clock=None):
        samples.append(Sample(run=0, layer=layer, counter=counter, value=value, unit=unit,
                              clock=clock))

    chosen = prediction.layers if layers is None else [
        layer for layer in prediction.layers if layer.index in layers]
    for layer in chosen:
        add(layer.index, "cpu_cycles", round(layer.cycles * factor), "cycles", "cpu")
        for name, value in (counters or {}).items():
            add(layer.index, name, value(layer))
    add(None, "cpu_cycles", round(prediction.cycles * factor) + 17, "cycles", "cpu")
    for name, value in (whole or {}).items():
        add(None, name, value)
    told = {"kind": "measured", "model": "made", "board": deployment.board.name,
            "model_sha256": deployment.graph.sha256, "runtime": "made@1.0",
            "clocks_hz": (("cpu", clock_hz),), "temperature": "warm", "source": "made",
            "architecture_id": deployment.graph.architecture_id} | header
    return Measurement(header=Header(**told), samples=tuple(samples))


def check_sums(attribution):
    """The law: in every row and in every column, in whole numbers."""
    for account in attribution.accounts:
        total = account.total
        for row in (*account.rows, total):
            assert row.first == sum(line.first for line in row.lines)
            assert row.second - row.first == row.explained + row.unexplained
            assert all(isinstance(value, int) for value in (
                row.first, row.second, row.unexplained))
        for name in ("first", "second", "gap", "explained", "unexplained"):
            assert getattr(total, name) == sum(getattr(row, name) for row in account.rows)
        assert total.first == attribution.first.whole.amounts[account.quantity]
        assert total.second == attribution.second.whole.amounts[account.quantity]
