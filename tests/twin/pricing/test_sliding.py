"""A slide along a clock says what a prediction says, and works out each timing once."""

import pytest

import twin
from twin.pricing import batch
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.sliding import Slide


@pytest.mark.parametrize(("board", "clock", "runtime", "calibration"), [
    ("nucleo_l4r5zi", "cpu", None, "auto"), ("stm32n6570_dk", "cpu", "tflm-cmsis-nn@2.3.1", "auto"),
    ("nucleo_h7a3zi_q", "cpu", "tflm-cmsis-nn@2.3.1", "none"),
    ("stm32n6570_dk", "npu", "neural-art@3.0.0", "auto")])
def test_a_slide_is_a_prediction_at_each_clock(board, clock, runtime, calibration) -> None:
    base = twin.deploy("ad", board, runtime=runtime)
    slide = Slide(base, clock, temperature="cold", calibration=calibration)
    own_hz = base.board.clock(clock).frequency_hz
    for share in (0.9, 0.31, 0.905, 0.3, 0.9025):
        hertz = round(share * own_hz)
        slid = slide.price(hertz)
        made = predict_calibrated(base.replace({f"clocks.{clock}.frequency_hz": hertz}),
                                  temperature="cold", calibration=calibration)
        assert slid.batch.time_us[0] == pytest.approx(made.time_us, rel=1e-12)
        assert slid.batch.layers.time_us[0] == pytest.approx(
            [layer.time_us for layer in made.layers], rel=1e-12)
        if made.energy_uj is not None:
            assert slid.batch.energy_uj[0] == pytest.approx(made.energy_uj, rel=1e-12)
        if made.certainty is not None:
            assert slid.batch.time_low_us[0] == pytest.approx(made.certainty.time_us.low, rel=1e-12)
        assert slid.clocks_hz[clock] == hertz
        assert slid.board.power == made.deployment.board.power
        assert [one.wait_states for one in slid.board.memories] == [
            one.wait_states for one in made.deployment.board.memories]


def test_the_own_clock_keeps_its_voltage_scale() -> None:
    """Also where a lower scale would do, which clocks beside it take."""
    kws = twin.deploy("kws", "nucleo_l4r5zi")
    board = kws.replace({"clocks.cpu.frequency_hz": 20e6, "supply.voltage_scale": "range1"}).board
    base = twin.deploy("kws", board)
    slide = Slide(base, "cpu", temperature="cold", calibration="none")
    scales = []
    for hertz in (18e6, 20e6, 60e6, 24e6, 20e6):
        slid = slide.price(hertz)
        made = predict_calibrated(base.replace({"clocks.cpu.frequency_hz": hertz}),
                                  temperature="cold", calibration="none")
        assert slid.batch.energy_uj[0] == pytest.approx(made.energy_uj, rel=1e-12)
        scales.append(slid.board.power.voltage_scale)
    assert scales == ["range2", "range1", "range1", "range2", "range1"]


def test_a_timing_is_worked_out_once(monkeypatch) -> None:
    base, made = twin.deploy("ad", "nucleo_l4r5zi"), []
    itemise = batch.itemise
    monkeypatch.setattr(batch, "itemise",
                        lambda *args, **more: made.append(1) or itemise(*args, **more))
    slide = Slide(base, "cpu", temperature="warm", calibration="auto")
    for megahertz in (119, 118, 118.5, 118.25, 119.5, 21, 22):
        slide.price(megahertz * 1e6)
    assert len(made) == 2  # two voltage scales, each of one number of wait states
    with pytest.raises(twin.TwinError, match="120 MHz"):
        slide.price(500e6)
