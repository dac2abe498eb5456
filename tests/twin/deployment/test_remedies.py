"""A refusal names what would fit, and what it names does."""

from __future__ import annotations

import contextlib
import dataclasses
import re

import pytest

import twin
from hwmodels.board.file import load_board
from twin.api.commands.predict import deploy_as_stated
from twin.deployment.deploy import deploy
from twin.deployment.split import list_moves
from twin.errors import DoesNotFitError
from twin.network.zoo import build
from twin.pricing.batched import predict_many
from twin.pricing.calibrated import predict_calibrated
from twin.runtimes import list_runtimes, load_runtime
from twin.studies.results import list_columns

BOARD = "stm32h747i_disco"
SMALL = {"memories.sram.size_bytes": "24KiB", "memories.sram_d2.size_bytes": "16KiB",
         "memories.dtcm.size_bytes": "16KiB", "memories.itcm.size_bytes": "16KiB"}
CORE_RUNTIMES = [name for name in list_runtimes() if not load_runtime(name).accelerated
                 and not name.startswith(("float", "executorch-portable", "esp-dl", "tinymaix",
                                          "emlearn"))]


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
    alone, both = list_moves(board, True, "flash", "sram")
    assert alone[:5] == [(None, "sram_d2"), (None, "dtcm"), (None, "itcm"), (None, "sdram"),
                         (None, "sram+sdram")]
    assert alone[5:8] == [("nor", None), ("sdram", None), ("flash+nor", None)]
    assert len(alone) == 5 + 3 and len(both) == 15


def test_code_moves_where_the_board_file_puts_it_and_it_has_no_room() -> None:
    home = load_board("nucleo_f746zg")
    board = dataclasses.replace(home, placement=(*dict(home.placement, code="itcm").items(),))
    placed = deploy("kws", board)
    assert placed.code == "dtcm" and placed.weights_named == "flash"
    assert any("code in dtcm: the fastest of 3 that fit" in note for note in placed.notes)
    times = [predict_calibrated(deploy("kws", dataclasses.replace(board, placement=(
        *dict(home.placement, code=name).items(),)))).time_us for name in ("dtcm", "sram", "flash")]
    assert min(times) == times[0]
    with pytest.raises(DoesNotFitError, match="8,616 bytes short in itcm"):
        deploy("kws", home).replace({"placement.code": "itcm"})


def test_weights_in_ram_need_the_flash_they_are_copied_from() -> None:
    board = "esp32s3_devkitc"
    assert deploy("vww", board, weights="psram").weights_named == "psram"
    small = load_board(board, overrides={"memories.flash.size_bytes": "256KiB"})
    for weights in ("psram", None):
        with pytest.raises(DoesNotFitError, match=r"needs .* flash of esp32s3_devkitc has 262,144"):
            deploy("vww", small, weights=weights)


def test_where_nothing_fits_the_nearest_is_named_with_the_bytes_it_lacks() -> None:
    with pytest.raises(DoesNotFitError) as refused:
        deploy(build("mobilenet_v1_1.0_224"), "nucleo_f401re")
    short = refused.value.short
    assert str(refused.value).count("does not fit") == 1
    assert str(refused.value).endswith(
        "no other memory of nucleo_f401re holds it; nearest: weights in flash, arena in sram, "
        f"{short['sram']:,} bytes short in sram and {short['flash']:,} bytes short in flash")
    needed = int(re.search(r"needs ([\d,]+) bytes", str(refused.value))[1].replace(",", ""))
    assert short["flash"] == needed - load_board("nucleo_f401re").memory("flash").size_bytes
    assert short["flash"] > short["sram"]  # What lacks most is named first.
    tight = load_board(BOARD, overrides={**{f"memories.{name}.size_bytes": "64KiB" for name in (
        "flash", "nor", "sdram")}, **SMALL})
    with pytest.raises(DoesNotFitError, match=r"nearest: weights in \S+, arena in \S+, [\d,]+ b"):
        deploy(build("vww"), tight, runtime="cmsis-nn")


def test_weights_too_large_for_every_flash_fit_nowhere() -> None:
    board = load_board(BOARD, overrides={"memories.flash.size_bytes": "64KiB",
                                         "memories.nor.size_bytes": "64KiB"})
    for places in ({}, {"weights": "flash"}, {"weights": "sdram"}):
        with pytest.raises(DoesNotFitError, match=r"nearest: weights in nor.* bytes short in nor$"):
            deploy(build("vww"), board, runtime="cmsis-nn", **places)
    stored = load_board(BOARD, overrides={"memories.flash.size_bytes": "64KiB"})
    with pytest.raises(DoesNotFitError, match=r"with --set placement\.weights=nor it fits"):
        deploy(build("vww"), stored, runtime="cmsis-nn", weights="flash")  # asked for: kept


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


def test_a_change_that_outgrows_the_default_takes_the_next_place_that_fits() -> None:
    """A place of the base was nobody's wish: it moves as in `deploy`, back and forth."""
    base = deploy("vww", BOARD, runtime="tflm-cmsis-nn")
    large = base.replace({"network.resolution": "400x400"})
    assert base.arena == "sram" and large.arena == "sdram" and not large.asked
    assert "arena in sdram: the fastest of" in "".join(large.notes)
    assert large.replace({"network.resolution": "96x96"}).arena == "sram"
    change = {"network.resolution": "400x400"}
    moved = "".join(twin.what_if(base, change).remarks)
    assert "the change moves arena from sram to sdram" in moved
    kept = twin.what_if(base, {**change, "placement.arena": "sdram"})
    assert "the change moves" not in "".join(kept.remarks)
    slower = base.replace({"memories.sram.size_bytes": "64KiB"})
    assert slower.arena == "dtcm" and "arena placed in dtcm" in "".join(slower.notes)
    batch = predict_many(base, vary={"network.resolution": ["96x96", "400x400"]})
    assert not batch.failures
    assert batch.time_us[1] == pytest.approx(predict_calibrated(large).time_us)


def test_a_change_keeps_a_place_somebody_asked_for_and_refuses_what_outgrows_it() -> None:
    asked = deploy("vww", BOARD, runtime="tflm-cmsis-nn", arena="sram")
    with pytest.raises(DoesNotFitError, match=r"with --set placement\.arena=sdram it fits"):
        asked.replace({"network.resolution": "400x400"})
    base = deploy("vww", BOARD, runtime="tflm-cmsis-nn")
    for kept in (asked, base.replace(arena="sram"), base.replace({"placement.arena": "sram"})):
        assert kept.asked == ("arena",)
        with pytest.raises(DoesNotFitError, match="sram of"):
            kept.replace({"memories.sram.size_bytes": "64KiB"})
    assert asked.replace({"runtime": "x-cube-ai@10.2.0"}).arena_named == "sram"


def test_a_command_takes_the_setting_a_refusal_names() -> None:
    options = {"runtime": "tflm-cmsis-nn", "clock_hz": None, "weights": None, "arena": None,
               "assume_unsupported": None}
    with pytest.raises(DoesNotFitError, match=r"with --set placement\.arena=sram it fits"):
        deploy_as_stated("vww", BOARD, **{**options, "arena": "itcm"})
    placed = deploy_as_stated("vww", BOARD, **{**options, "arena": "itcm"},
                            changes={"placement.arena": "sdram"})
    assert placed.arena == "sdram"
    with pytest.raises(DoesNotFitError, match="itcm of"):
        deploy_as_stated("vww", BOARD, **{**options, "arena": "itcm"},
                       changes={"supply.voltage_v": "3.0"})


def test_a_table_shows_where_code_moved() -> None:
    home = load_board("nucleo_f746zg")
    board = dataclasses.replace(home, placement=(*dict(home.placement, code="itcm").items(),))
    row, = twin.sweep("kws", board).rows
    assert row.placement == "flash/sram/dtcm" and list_columns(row)["code"] == "dtcm"
    asked, = twin.sweep("kws", home).rows
    assert asked.placement == "flash/sram" and "code" not in list_columns(asked)
