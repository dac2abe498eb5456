"""Peak multiply-accumulates of a core by type, from the rates manuals state."""

import pytest

from hwmodels.board.file import load_board
from twin.pricing.roofs import npu_macs_per_cycle, peak_macs_per_cycle


@pytest.mark.parametrize("board, dtype, rate", [
    ("nucleo_l4r5zi", "int8", 2), ("nucleo_l4r5zi", "int16", 2),  # SMLAD, one cycle
    ("nucleo_l4r5zi", "float32", 1 / 3),  # VMLA.F32, three cycles
    ("nucleo_h7a3zi_q", "float32", 1),
    ("rpi_pico", "int8", 1 / 2),  # MULS and ADDS
    ("rpi_pico", "float32", None),  # no floating-point unit
    ("apollo510_evb", "int8", 8), ("apollo510_evb", "int16", 4), ("apollo510_evb", "float32", 2),
    ("esp32s3_devkitc", "int8", 16),  # EE.VMULAS.S8.ACCX
    ("nucleo_l4r5zi", "int4", None)])
def test_peak_macs_of_a_type(board, dtype, rate):
    assert peak_macs_per_cycle(load_board(board), dtype) == (
        None if rate is None else pytest.approx(rate))


def test_peak_of_an_accelerator_is_its_convolution_units():
    board = load_board("stm32n6570_dk")
    unit = board.npu.unit_for("convolution")
    assert npu_macs_per_cycle(board) == unit.count * dict(unit.macs_per_cycle)["8x8"]
    assert npu_macs_per_cycle(load_board("nucleo_l4r5zi")) is None
