"""Many predictions at once are what `predict` says of each."""

from __future__ import annotations

import numpy as np
import pytest
from made_batches import check_row

import twin
from twin.errors import UsageError
from twin.pricing.calibrated import predict_calibrated
from twin.pricing.calibration import choose_calibration
from twin.pricing.price_names import TIME_PRICES


@pytest.fixture(scope="module")
def kws():
    return twin.deploy("kws", "nucleo_l4r5zi")


def test_rows_are_what_predict_says(kws) -> None:
    h7 = twin.deploy("ad", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn")
    slow = kws.replace({"clocks.cpu.frequency_hz": "16MHz"})
    for calibration in ("auto", "none"):
        batch = twin.predict_many([kws, h7, slow], layers=True, calibration=calibration)
        for row, one in enumerate((kws, h7, slow)):
            check_row(batch, row, twin.predict(one, calibration=calibration))


def test_rows_of_our_own_image_keep_their_intervals() -> None:
    image = twin.deploy("kws", "nucleo_l4r5zi", runtime="firmware@O2")
    clocks = [60e6, 120e6]
    batch = twin.predict_many(image, vary={"clocks.cpu.frequency_hz": clocks})
    for row, hertz in enumerate(clocks):
        alone = twin.predict(image.replace({"clocks.cpu.frequency_hz": hertz})).certainty
        assert (batch.time_low_us[row], batch.time_high_us[row]) == (
            alone.time_us.low, alone.time_us.high)
        assert batch.energy_high_uj[row] == alone.energy_uj.high
    listed = twin.predict_many([image])
    assert listed.time_low_us[0] == twin.predict(image).certainty.time_us.low


def test_voltage_and_wait_states_follow_a_varied_clock(kws) -> None:
    clocks = [8e6, 16e6, 26e6, 40e6, 80e6, 120e6]
    batch = twin.predict_many(kws, vary={"clocks.cpu.frequency_hz": np.array(clocks)})
    for row, clock in enumerate(clocks):
        check_row(batch, row, twin.predict(kws.replace({"clocks.cpu.frequency_hz": clock})))


def test_a_clock_that_stays_keeps_its_voltage_scale(kws) -> None:
    """Also where a lower scale would do, which another clock takes."""
    board = kws.replace({"clocks.cpu.frequency_hz": 20e6, "supply.voltage_scale": "range1"}).board
    check_varied(twin.deploy("kws", board), {"clocks.cpu.frequency_hz": [18e6, 20e6, 24e6]})


def check_varied(deployment, vary) -> None:
    batch = twin.predict_many(deployment, vary=vary, layers=True, errors="keep")
    errors = {failure.row: str(failure.error) for failure in batch.failures}
    for row in range(len(batch)):
        settings = {name: values[row] for name, values in vary.items()}
        try:
            made = twin.predict(deployment.replace(settings))
        except twin.TwinError as error:
            assert errors.pop(row) == str(error)
        else:
            check_row(batch, row, made)
    assert not errors


def test_a_varied_supply_voltage_is_its_own_product(kws) -> None:
    """Between the bounds of its rules it changes nothing but energies."""
    check_varied(kws, {"supply.voltage_v": [-5.0, 0, 61, 1.0, 1.2, 1.71, 2.5, 3.6, 3.7]})
    check_varied(kws, {"supply.voltage_v": [1.8, 2.5, 3.3, 3.3, 5.0],
                       "clocks.cpu.frequency_hz": [16e6, 120e6, 80e6, 500e6, 600e6]})
    regulated = twin.deploy("ad", "b_u585i_iot02a")  # an SMPS of tabulated efficiency
    check_varied(regulated, {"supply.voltage_v": [1.75, 1.9, 3.0, 3.3, 3.6]})


def test_other_masters_and_weights_by_dma_are_products_too() -> None:
    plain = twin.deploy("kws", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn")
    vary = {"supply.voltage_v": [1.7, 3.0, 3.3], "clocks.cpu.frequency_hz": [16e6, 280e6, 280e6]}
    moved = plain.replace({"placement.weights_via": "mdma", "placement.tiles": "dtcm"})
    check_varied(moved, vary)
    factors = twin.predict_many(moved, vary={
        "learnt.energy.memory": [1.0, 1.0, 2.0],
        **{f"learnt.time.{price}": [1e-6, 1.0, 1.0] for price in TIME_PRICES if price != "memory"}})
    waits = factors.cause_cycles[:, factors.causes.index("dma_wait")]
    assert waits[0] > waits[1] == waits[2]  # faster layers hide less
    used = factors.cause_pj[:, factors.causes.index("dma_wait")]
    assert used[2] == pytest.approx(2 * used[1])
    check_varied(plain.replace({"load.mdma.memory": "sram",
                                "load.mdma.bytes_per_second": "20e6"}), vary)


def test_layers_of_an_accelerator_are_predicted_once_where_rows_set_the_same() -> None:
    base = twin.deploy("ad", "stm32n6570_dk", runtime="neural-art")
    check_varied(base, {"clocks.cpu.frequency_hz": [400e6, 800e6, 400e6]})
    check_varied(base, {"clocks.npu.frequency_hz": [500e6, 700e6, 1e9, 2e9, 900e6],
                        "supply.voltage_v": [3.0, 1.8, 3.3, 3.3, 9.0],
                        "placement.weight_bits": [8, 4, 8, 4, 8]})
    with pytest.raises(twin.TwinError, match=r"2 GHz|2000 MHz"):
        twin.predict_many(base, vary={"clocks.npu.frequency_hz": [500e6, 2e9, 3e9]})


@pytest.mark.parametrize("calibration", ["auto", "none"])
def test_learnt_factors_are_varied(kws, calibration) -> None:
    batch = twin.predict_many(kws, calibration=calibration, vary={
        "learnt.time.memory": [0.5, 2.0], "learnt.time.stream": [0.5, 2.0],
        "learnt.energy.leakage": 3.0})
    for row, factor in enumerate((0.5, 2.0)):
        chosen = choose_calibration(kws, calibration)
        if chosen is None:
            waits = twin.predict(kws, calibration="none").bill.cycles("cpu", "flash_wait")
            at = batch.causes.index("flash_wait")
            assert batch.cause_cycles[row, at] == pytest.approx(factor * waits)
            assert np.isnan(batch.time_low_us[row])
            continue
        import dataclasses

        log = chosen.time.log.copy()
        for price in ("memory", "stream"):
            log[TIME_PRICES.index(price)] = np.log(factor)
        energy = chosen.energy.log.copy()
        energy[-1] = np.log(3.0)
        check_row(batch, row, predict_calibrated(kws, calibration=dataclasses.replace(
            chosen, time=dataclasses.replace(chosen.time, log=log),
            energy=dataclasses.replace(chosen.energy, log=energy))))


def test_what_cannot_be_is_a_row_where_it_is_kept(kws) -> None:
    vary = {"clocks.cpu.frequency_hz": [80e6, 500e6, "40MHz"]}
    with pytest.raises(twin.TwinError, match="500 MHz is above"):
        twin.predict_many(kws, vary=vary)
    odd = twin.predict_many(kws, errors="keep", vary={
        "clocks.cpu.frequency_hz": [-5.0, -7.0, 80e6, 130e6, 140e6]})
    assert [str(one.error).split(": ")[1].split(" is")[0] for one in odd.failures] == [
        "-5.0", "-7.0", "130 MHz", "140 MHz"]
    batch = twin.predict_many(kws, vary=vary, errors="keep")
    assert [one.row for one in batch.failures] == [1]
    assert np.isnan(batch.time_us).tolist() == [False, True, False]
    assert batch.ram_bytes[1] == -1 and "500 MHz" in str(batch.failures[0].error)


@pytest.mark.parametrize(("vary", "said"), [
    ({"learnt.time.memroy": [1.0]}, "did you mean 'learnt.time.memory'|learnt.time.memory"),
    ({"learnt.time.memory": [1.0, -1.0]}, "-1; accepted: numbers above 0"),
    ({"learnt.time.memory": ["x"]}, "accepted: numbers above 0"),
    ({"learnt.time.memory": [1.0, 2.0], "learnt.time.call": [1.0, 2.0, 3.0]},
     "2 values where others have 3"),
    ({"clocks.cpu.frequency_hz": []}, "no values"),
    ({"clocks.cpu.frequency_hz": iter([1, 2])}, "accepted: a list or an array"),
    ([80e6], "accepted: a mapping of paths to values"),
])
def test_a_variation_that_means_nothing_is_refused(kws, vary, said) -> None:
    with pytest.raises(UsageError, match=said):
        twin.predict_many(kws, vary=vary)


def test_only_deployments_are_taken(kws) -> None:
    for none in ("kws", ["kws"], None, 3):
        with pytest.raises(UsageError, match="is not a deployment"):
            twin.predict_many(none)
    with pytest.raises(UsageError, match="accepted with one deployment"):
        twin.predict_many([kws], vary={"learnt.time.memory": [1.0]})
    with pytest.raises(UsageError, match="errors 'drop'; accepted: raise, keep"):
        twin.predict_many(kws, errors="drop")
    assert len(twin.predict_many([])) == 0
