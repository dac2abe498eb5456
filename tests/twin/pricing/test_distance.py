"""An interval widens with the distance from what was measured; in float kernels, too."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from calibration.fitting.intervals import DRIFT_SD, FLOAT_SD, OPERATOR_SD
from hwmodels.board.facts import Board
from hwmodels.board.file import load_board
from twin.deployment.deploy import deploy
from twin.network.zoo.builder import Builder
from twin.pricing.assurance import bound_energies
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.certainty import Certainty
from twin.pricing.draw import probability_faster
from twin.pricing.extrapolation import far_sd
from twin.pricing.inference import predict
from twin.pricing.program_certainty import CORE_SD, WAITING_SD, assure_program

BOARD, RUNTIME = "stm32h747i_disco", "x-cube-ai@10.0.0"
CLOCKS_MHZ = (400, 100, 25)
"""Measured at the first."""


def width(interval) -> float:
    return math.log(interval.high / interval.low)


def at_clock(megahertz: float):
    deployment = deploy("ic", BOARD, runtime=RUNTIME).replace(
        {"clocks.cpu.frequency_hz": f"{megahertz:g}MHz"})
    return deployment, predict_calibrated(deployment)


def test_a_clock_far_from_measured_ones_widens() -> None:
    found = [at_clock(megahertz) for megahertz in CLOCKS_MHZ]
    support = choose_calibration(found[0][0]).entry.support
    away = [far_sd(support.cycles[0], megahertz * 1e6, support, measured=True)
            for megahertz in CLOCKS_MHZ]
    assert away == pytest.approx([0.0, DRIFT_SD * math.log(4), DRIFT_SD * math.log(16)])
    widths = [width(prediction.certainty.time_us) for _, prediction in found]
    assert widths[0] < widths[1] < widths[2]
    layers = [width(prediction.certainty.layers[0].time_us) for _, prediction in found]
    assert layers[0] < layers[1] < layers[2]


def convolution(size: int):
    net = Builder("made", 0)
    return net.finish(net.conv(net.input((1, size, size, 8)), 8, 3))


def test_a_network_far_smaller_than_measured_ones_widens() -> None:
    small, large = (predict_calibrated(deploy(convolution(size), BOARD, runtime=RUNTIME))
                    for size in (4, 64))
    support = choose_calibration(small.deployment).entry.support
    away = [far_sd(one.cycles, 400e6, support, measured=True) for one in (large, small)]
    assert away == pytest.approx([0.0, DRIFT_SD * math.log(support.cycles[0] / small.cycles)])
    assert 2 * small.cycles < support.cycles[0]
    assert width(small.certainty.time_us) > width(large.certainty.time_us)


def test_counted_kernels_are_less_sure_in_float() -> None:
    # Builds fuse products, and call other soft-float routines: the same layers in bytes know more.
    def predict(dtype: str) -> Certainty:
        net = Builder("made", 0)
        x = net.input((1, 8, 8, 4), dtype=dtype)
        for _ in range(4):
            x = net.layer("tanh", (x,), (1, 8, 8, 4), dtype=dtype)
        return predict_calibrated(deploy(net.finish(x), "rpi_pico",
                                         runtime="tflm-reference@2026")).certainty

    floats, bytes_ = predict("float32"), predict("int8")
    assert bytes_.draw.unlearned_sd == pytest.approx(0.0, abs=0.05)
    assert floats.draw.unlearned_sd == pytest.approx(FLOAT_SD + bytes_.draw.unlearned_sd, abs=0.05)
    assert width(floats.time_us) > 1.3 * width(bytes_.time_us)


@pytest.mark.parametrize("op, inputs, least, most", [
    # Instructions an element beside those predicted, counted on a Cortex-M4 with drawn exponents:
    # a dividend below the divisor, and one 2^8 times as large; inputs below -17, and about -4.
    ("floor_mod", 2, 51.1 / 78.1, 149.6 / 78.1), ("elu", 1, 17.2 / 33.2, 44.3 / 33.2)])
def test_what_inputs_decide_is_inside_the_interval_and_said(op, inputs, least, most):
    net = Builder("made", 0)
    placed = [net.input((1, 16, 16, 16), dtype="float32") for _ in range(inputs)]
    for _ in range(4):
        out = net.layer(op, placed, (1, 16, 16, 16), dtype="float32")
    prediction = predict_calibrated(deploy(net.finish(out), "nucleo_l4r5zi",
                                           runtime="tflm-reference@2026"))
    time = prediction.certainty.time_us
    assert prediction.certainty.draw.unlearned_sd == pytest.approx(OPERATOR_SD, abs=0.05)
    assert time.low < least * prediction.time_us and most * prediction.time_us < time.high
    assert any(text.startswith("inputs decide the cost") for text in prediction.warnings)


def test_layers_that_were_measured_are_not_called_networks() -> None:
    prediction = predict_calibrated(deploy(convolution(4), "apollo510_evb",
                                           runtime="tflm-cmsis-nn@2023"))
    said = [text for text in prediction.certainty.extrapolating if " cycles; " in text]
    assert said and "no whole network was measured, and layers that were add up to" in said[0]


def test_boards_lie_apart_with_their_clocks() -> None:
    deployment, prediction = at_clock(25)
    support = choose_calibration(deployment).entry.support
    assert far_sd(prediction.cycles, 25e6, support, measured=False) == 0.0


def made_by_st(board: str) -> Board:
    """Return a board as if its chip were ST's: closed libraries run on no other maker's."""
    machine = load_board(board)
    return replace(machine, soc="stm32-made",
                   cores=(replace(machine.core, soft_float="libgcc"),))


def test_a_library_known_under_other_instructions_keeps_a_part_of_what_rows_tell() -> None:
    # Rows of ST's library are of cores with DSP instructions; of another's nothing is left open.
    plain, dsp = (predict_calibrated(deploy("kws", made_by_st(board), runtime="x-cube-ai"))
                  .certainty for board in ("rpi_pico", "nucleo_f401re"))
    assert 0.1 < plain.draw.unlearned_sd < OPERATOR_SD
    assert dsp.draw.unlearned_sd < 0.03


@pytest.mark.parametrize("board", ["rpi_pico", "apollo510_evb", "nucleo_f401re", "nrf52840dk"])
@pytest.mark.parametrize("runtime", ["x-cube-ai", "st-edge-ai", "cmsis-nn"])
def test_a_library_that_is_known_reaches_no_further_than_one_that_is_not(board, runtime) -> None:
    known, unseen = (predict_calibrated(deploy("kws", made_by_st(board), runtime=one))
                     .certainty for one in (runtime, "unknown"))
    assert known.time_us.high / known.time_us.low < 1.03 * unseen.time_us.high / unseen.time_us.low


def test_two_runs_of_machine_code_share_the_errors_of_core_and_waits() -> None:
    """At a tenth of the clock fewer cycles wait; all else of both times is drawn once."""
    draws = [assure_program(predict(deploy("ad", "nucleo_h7a3zi_q", clock_hz=hz)), None, {}).draw
             for hz in (280e6, 28e6)]
    assert probability_faster(100.0, 99.0, draws[0], draws[0]) == 1.0
    moved = float(abs(draws[1].time - draws[0].time)[0])
    sd = moved * math.hypot(CORE_SD, WAITING_SD)
    assert probability_faster(100.0, 99.0, *draws) == pytest.approx(
        NormalDist().cdf(-math.log(0.99) / sd))


def test_without_learnt_energy_no_row_has_an_interval() -> None:
    learnt = replace(choose_calibration(deploy("ad", BOARD, runtime=RUNTIME)), energy=None)
    ends = bound_energies(learnt, np.ones((3, 5)), np.ones(3), None, 0.0, factors=np.ones(5))
    assert [end.shape for end in ends] == [(3,), (3,)] and np.isnan(ends).all()
