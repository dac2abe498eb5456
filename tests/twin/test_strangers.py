"""A board nobody measured is never surer than the board whose rows it borrows."""

from dataclasses import replace

import pytest

from calibration.datasets import published_rows
from calibration.overlay import write_overlay
from twin.deployment import deploy
from twin.learning.calibrated import predict_calibrated
from twin.learning.observations import observe_rows
from twin.learning.overlays import learn, make_overlays

RUNTIMES = ("x-cube-ai@9.0.0", "x-cube-ai@8.0.0")
"""One that was measured on the boards, and one that was not."""


def reach(prediction, name: str) -> tuple[float, float]:
    """How far an interval goes down and up, as factors."""
    value, interval = getattr(prediction, name), getattr(prediction.certainty, name)
    return value / interval.low, interval.high / value


def assert_no_surer(measured, stranger) -> None:
    for name in ("time_us", "energy_uj"):
        if getattr(measured.certainty, name) is None:
            continue
        known, unknown = reach(measured, name), reach(stranger, name)
        assert unknown[0] >= known[0] * (1 - 1e-9) and unknown[1] >= known[1] * (1 - 1e-9)


def rename(deployment):
    """The same machine under a name nobody measured."""
    return replace(deployment, board=replace(deployment.board, name="twin_of_it"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Overlays by board, None for boards not measured, learnt from three boards."""
    boards = ("nucleo_l4r5zi", "nucleo_u575zi_q", "b_u585i_iot02a")
    rows = [row for row in published_rows() if row.use == "fit" and row.board in boards
            and row.runtime.startswith("x-cube-ai")]
    folder = tmp_path_factory.mktemp("overlays")
    return {board: write_overlay(folder / f"{board}.yaml", overlay) for (_, board), overlay
            in make_overlays(learn(observe_rows(rows))).items()}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "nucleo_u575zi_q"])
def test_the_twin_of_a_measured_board_is_no_surer(files, board: str, runtime: str) -> None:
    kws = deploy("kws", board, runtime=runtime)
    assert_no_surer(predict_calibrated(kws, calibration=str(files[board])),
                    predict_calibrated(rename(kws), calibration=str(files[None])))
