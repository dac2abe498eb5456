"""Derivatives: exact with prices, differences of real predictions with widths."""

from __future__ import annotations

import numpy as np
import pytest

import twin
from twin.errors import NotApplicableError, UsageError


@pytest.fixture(scope="module")
def ad():
    return twin.deploy("ad", "nucleo_u575zi_q")


@pytest.fixture(scope="module")
def slopes(ad):
    return twin.differentiate(ad)


def test_figures_are_those_of_the_prediction_and_sums_of_their_slopes(ad, slopes) -> None:
    made = twin.predict(ad)
    assert slopes.is_exact and not slopes.refused
    assert slopes.time_us == pytest.approx(made.time_us, rel=1e-12)
    assert slopes.energy_uj == pytest.approx(made.energy_uj, rel=1e-12)
    # Time is linear in its prices, energy in those of power: Euler's theorem.
    assert sum(one.factor * one.time_us for one in slopes.prices) == pytest.approx(
        made.time_us, rel=1e-12)
    assert sum(one.factor * one.energy_uj for one in slopes.prices
               if ".energy." in one.name) == pytest.approx(made.energy_uj, rel=1e-12)


def test_each_price_moves_what_its_slope_says(ad, slopes) -> None:
    rows = np.array([[one.factor] * len(slopes.prices) for one in slopes.prices])
    np.fill_diagonal(rows, 1.25 * np.diag(rows))
    batch = twin.predict_many(ad, vary={one.name: row for one, row in
                                        zip(slopes.prices, rows, strict=True)})
    for number, one in enumerate(slopes.prices):
        more = 0.25 * one.factor
        assert batch.time_us[number] == pytest.approx(
            slopes.time_us + more * one.time_us, rel=1e-12)
        assert batch.energy_uj[number] == pytest.approx(
            slopes.energy_uj + more * one.energy_uj, rel=1e-12)
    assert slopes.price("learnt.time.fully_connected").time_us > 0


def test_a_width_s_slope_is_the_difference_of_two_predictions(ad, slopes) -> None:
    slope = slopes.width(0)
    narrower = twin.predict(ad.replace({
        "network.channels": f"0:{slope.channels - slope.removed}"}))
    assert slope.removed == 8 and len(slopes.widths) == 9
    assert slope.time_us * 8 == pytest.approx(slopes.time_us - narrower.time_us, rel=1e-9)
    assert slope.energy_uj * 8 == pytest.approx(slopes.energy_uj - narrower.energy_uj, rel=1e-9)
    assert slope.flash_bytes * 8 == slopes.flash_bytes - narrower.flash_bytes
    # What was asked of other layers stays, and a layer asked again is narrower still.
    once = ad.replace({"network.channels": "0:64/1:32"})
    again = twin.differentiate(once, step=16).width(0)
    both = twin.predict(ad.replace({"network.channels": "0:48/1:32"}))
    assert again.channels == 64 and again.time_us * 16 == pytest.approx(
        twin.predict(once).time_us - both.time_us, rel=1e-9)


def test_on_an_accelerator_prices_are_differences() -> None:
    npu = twin.differentiate(twin.deploy("ad", "stm32n6570_dk"), widths=False)
    assert not npu.is_exact and not npu.widths
    assert npu.energy_uj is None or sum(
        one.factor * one.energy_uj for one in npu.prices
        if ".energy." in one.name) <= npu.energy_uj * (1 + 1e-6)


def test_what_means_nothing_is_refused(ad, slopes) -> None:
    with pytest.raises(UsageError, match=r"accepted: twin\.deploy"):
        twin.differentiate("ad")
    with pytest.raises(UsageError, match="step 0; accepted: 1"):
        twin.differentiate(ad, step=0)
    with pytest.raises(UsageError, match="accepted: learnt"):
        slopes.price("learnt.time.magic")
    with pytest.raises(UsageError, match="layer 9: has no width"):
        slopes.width(9)
    for asked, said in (("0:0", "1 to 128 channels"), ("9:8", "layer 9 of ad has no channels"),
                        ("wide", "such as 3:32"), ("1:3/1:4", "such as 3:32")):
        with pytest.raises(UsageError, match=said):
            ad.replace({"network.channels": asked})
    with pytest.raises(NotApplicableError, match="accepted, as LAYER:CHANNELS now: none"):
        twin.deploy("lstm", "nucleo_u575zi_q", runtime="tflm-reference@2026").replace(
            {"network.channels": "0:4"})
