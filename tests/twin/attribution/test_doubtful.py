"""Prices no row identifies by themselves are marked in a comparison, and named as no reason."""

from dataclasses import replace

from twin.attribution.accounts import compare_sides
from twin.attribution.difference import NO_FINDING
from twin.attribution.predicted import side_of_prediction
from twin.deployment.deploy import deploy
from twin.pricing.inference import predict
from twin.reports.beside import say_reason


def sides(**changes):
    deployment = deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn")
    dearer = deployment.runtime
    dearer = replace(dearer, dispatch_cycles=dearer.dispatch_cycles * 20)
    before, after = (side_of_prediction(predict(one)) for one in (
        deployment, deployment.repriced(runtime=dearer, board=deployment.board)))
    return before, replace(after, **changes)


def test_a_doubtful_price_is_no_reason() -> None:
    difference = compare_sides(*sides(calibration="mine", doubtful=("call", "pointwise")))
    marked = {line.causes: line.counter for line in difference.main.total.lines}
    assert marked["kernel_call",] == NO_FINDING and marked["mac",] == ""
    assert not any("kernel_call" in say_reason(row) for row in difference.main.rows)
    assert "call, pointwise: no row identifies" in " ".join(difference.warnings)
    total = difference.main.total
    assert total.gap == total.explained + total.unexplained


def test_one_calibration_on_both_sides_marks_nothing() -> None:
    difference = compare_sides(*sides(doubtful=("call",)))
    assert not any(line.counter for line in difference.main.total.lines)
    assert say_reason(difference.main.parts[0]).startswith("kernel_call")
