"""Differences whole, as documents: sides, totals, parts, causes, findings."""

from pathlib import Path

import pytest
from made_measurements import measure
from made_outlines import compare_kept, outline
from made_predictions import make_prediction

import twin
from twin.attribution.accounts import compare_sides
from twin.attribution.document import (
    difference_document,
    split_document,
    view_document,
    what_if_document,
)
from twin.attribution.idealisation import split_time
from twin.attribution.measured import side_of_measurement
from twin.attribution.predicted import side_of_prediction
from twin.attribution.views import View

KEPT = Path(__file__).parent / "kept"


def measured(factor=1.1):
    prediction = twin.predict(twin.deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn"))
    told = {"model": "ad", "runtime": "cmsis-nn@6.0"}
    return side_of_prediction(prediction), side_of_measurement(
        measure(prediction, factor=factor, **told), "made")


def grown():
    return side_of_prediction(make_prediction(2, seed=2)), side_of_prediction(
        make_prediction(3, seed=1))


def accelerated():
    slow, fast = (twin.predict(twin.deploy("ad", "stm32n6570_dk", clock_hz=clock))
                  for clock in (400e6, 800e6))
    return side_of_prediction(slow), side_of_prediction(fast)


@pytest.mark.parametrize("make", [measured, grown, accelerated], ids=lambda make: make.__name__)
def test_differences(make) -> None:
    difference = compare_sides(*make(), anyway=True)
    found = [difference_document(difference, 0.05, difference.exceeding(0.05, with_parts=True)),
             view_document(View(difference=difference, remarks=("said",)))]
    for one in found:
        one.pop("generator", None)
    compare_kept(KEPT / f"{make.__name__}.txt", outline(found, 20))


def test_what_if() -> None:
    changed = twin.what_if(twin.deploy("ad", "nucleo_l4r5zi"), {"placement.weights": "sram",
                                                           "clocks.cpu.frequency_hz": "80MHz"})
    found = what_if_document(changed)
    found.pop("generator", None)
    compare_kept(KEPT / "whatif.txt", outline(found, 20))


@pytest.mark.parametrize("board", ["nucleo_l4r5zi", "stm32h747i_disco"])
def test_splits(board) -> None:
    found = split_time(twin.deploy("ad", board, runtime="cmsis-nn"))
    compare_kept(KEPT / f"split-{board}.txt", outline(split_document(found)))
