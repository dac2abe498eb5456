"""A refusal names what would fit, and what it names does."""

from __future__ import annotations

import contextlib
import re

import pytest

from hwmodels.board.file import load_board
from twin.api.commands.predict import deploy_as_told
from twin.deployment.deployment import deploy
from twin.deployment.split import name_remedy
from twin.errors import DoesNotFitError
from twin.network.zoo import build
from twin.pricing.calibrated import predict_calibrated
from twin.runtimes import list_runtimes

BOARD = "stm32h747i_disco"
SMALL = {"memories.sram.size_bytes": "24KiB", "memories.sram_d2.size_bytes": "16KiB",
         "memories.dtcm.size_bytes": "16KiB", "memories.itcm.size_bytes": "16KiB"}
CORE_RUNTIMES = [name for name in list_runtimes() if not name.startswith((
    "neural-art", "float", "executorch-portable"))]


@pytest.mark.parametrize("runtime", CORE_RUNTIMES)
@pytest.mark.parametrize("flash", ["64KiB", "2MiB"])
def test_what_a_refusal_names_fits(runtime: str, flash: str) -> None:
    board = load_board(BOARD, overrides={**SMALL, "memories.flash.size_bytes": flash})
    with pytest.raises(DoesNotFitError) as refused:
        deploy(build("vww"), board, runtime=runtime, arena="sram", weights="flash")
    told = dict(re.findall(r"--set placement\.(\w+)=(\S+)", str(refused.value)))
    assert told and str(refused.value).endswith("it fits")
    placed = deploy(build("vww"), board, runtime=runtime,
                    **{"arena": "sram", "weights": "flash", **told})
    assert placed.arena_named == told.get("arena", "sram")


def test_one_memory_of_the_chip_is_named_before_those_beside_it_and_before_both() -> None:
    board = load_board(BOARD)
    asked: list[tuple[str | None, str | None]] = []

    def fits(weights: str | None, arena: str | None) -> bool:
        asked.append((weights, arena))
        return False

    said = name_remedy(board, splits=True, weights="flash", arena="sram", fits=fits)
    assert said == f"no other memory of {BOARD} holds it"
    assert asked[:5] == [(None, "sram_d2"), (None, "dtcm"), (None, "itcm"), (None, "sdram"),
                         (None, "sram+sdram")]
    assert asked[5:8] == [("nor", None), ("sdram", None), ("flash+nor", None)]
    assert len(asked) == 5 + 3 + 15


def test_weights_too_large_for_every_flash_are_told_of_the_ram_beside_the_chip() -> None:
    board = load_board(BOARD, overrides={"memories.flash.size_bytes": "64KiB",
                                         "memories.nor.size_bytes": "64KiB"})
    with pytest.raises(DoesNotFitError, match=r"with --set placement\.weights=sdram it fits"):
        deploy(build("vww"), board, runtime="cmsis-nn", weights="flash")  # asked for: kept
    assert deploy(build("vww"), board, runtime="cmsis-nn").weights == "sdram"


def test_where_the_default_does_not_fit_the_fastest_place_that_does_is_taken() -> None:
    network, board = build("mobilenet_v2_0.35_96"), "apollo510_evb"
    taken = deploy(network, board)
    (note,) = [note for note in taken.notes if note.startswith("placement:")]
    assert f"weights in {taken.weights_named}, arena in {taken.arena_named}" in note
    tried = []
    for places in ({"weights": "flash"}, {"weights": "sram"}, {"arena": "sram"}):
        with contextlib.suppress(DoesNotFitError):
            tried.append(predict_calibrated(deploy(network, board, **places)).time_us)
    assert tried and predict_calibrated(taken).time_us <= min(tried)
    with pytest.raises(DoesNotFitError, match=r"with --set placement\.weights=flash it fits"):
        deploy(network, board, weights="dtcm")


def test_a_command_takes_the_setting_a_refusal_names() -> None:
    options = {"runtime": "tflm-cmsis-nn", "clock_hz": None, "weights": None, "arena": None,
               "assume_unsupported": None}
    with pytest.raises(DoesNotFitError, match=r"with --set placement\.arena=sram it fits"):
        deploy_as_told("vww", BOARD, **{**options, "arena": "itcm"})
    placed = deploy_as_told("vww", BOARD, **{**options, "arena": "itcm"},
                            changes={"placement.arena": "sdram"})
    assert placed.arena == "sdram"
    with pytest.raises(DoesNotFitError, match="itcm of"):
        deploy_as_told("vww", BOARD, **{**options, "arena": "itcm"},
                       changes={"supply.voltage_v": "3.0"})
