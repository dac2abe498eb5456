"""What could explain a gap nobody counted: planted prices are named as surely as rows tell them."""

import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console

from hwmodels.board.file import load_board
from hwmodels.quantities import format_time
from twin.attribution.diagnosis.faults import BINARY, PRICE_SD
from twin.attribution.difference import Account, Line, Row
from twin.attribution.possible import KERNELS, explain_gap, list_open, price_sds
from twin.pricing.calibration import shipped_calibration
from twin.reports.tables.diagnosis import possible_table

CAUSES = ("alu", "load_store", "flash_wait")
UNSURE = {"alu": 0.08, "load_store": 0.35, "flash_wait": 0.55}
KERNEL_ERRORS = dataclasses.replace(BINARY, common=0.05, family=0.01, layer=0.012)
OPS = ("conv_2d", "depthwise_conv_2d") * 4
rng = np.random.default_rng(3)
AMOUNTS = rng.uniform(0.1, 1.0, (8, 3)) * rng.uniform(1e5, 1e6, (8, 1))


def test_rows_of_which_nothing_was_measured_have_no_price():
    measured, nothing = account().rows[:2]
    nothing = dataclasses.replace(nothing, second=0)
    outside = dataclasses.replace(measured, first=0)
    assert nothing.first + nothing.unexplained == 0
    rows = (measured, nothing, outside)
    assert list_open(dataclasses.replace(account(), rows=rows)) == [measured]


def explain(made, **settled):
    return explain_gap(made, KERNEL_ERRORS, UNSURE | settled)


def account(amounts=AMOUNTS, factors=(1.0, 1.0, 1.0), own=0.0, counted=()):
    rows = []
    for index, (row, op) in enumerate(zip(amounts, OPS, strict=True)):
        first = np.round(row).astype(int)
        second = round(float(first @ np.array(factors)) * (1 + own * (-1) ** (index // 2)))
        lines = tuple(Line(causes=(cause,), first=int(one), second=(
            int(one) if cause in counted else None)) for cause, one in zip(
                CAUSES, first, strict=True))
        rows.append(Row(index=index, name=f"l{index}", op=op, unit="cycles", lines=lines,
                        first=int(first.sum()), second=second))
    return Account(quantity="cycles", unit="cycles", rows=tuple(rows))


def test_a_dearer_price_is_the_likeliest_cause_and_parts_sum_to_the_gap():
    for place, cause in enumerate(CAUSES[1:], 1):
        factors = np.ones(3)
        factors[place] = 1.4
        made = account(factors=factors)
        found = explain(made)
        truth = 0.4 * AMOUNTS[:, place].sum()
        assert found[0].cause == cause and found[0].probability > 0.9
        assert found[0].low < truth < found[0].high
        assert sum(one.expected for one in found) == pytest.approx(made.total.gap, abs=5)
        assert sum(one.probability for one in found) == pytest.approx(1)


def test_what_ran_outside_the_layers_is_none_of_a_price():
    inside = account(factors=(1.0, 1.4, 1.0))
    made = dataclasses.replace(inside, rows=(*inside.rows, Row(
        name="outside them", unit="cycles", first=0, second=7_885)))
    found = explain(made)
    assert found == explain(inside)
    gap, texts = inside.total.gap, []
    for one in (made, inside):
        Console(file=(out := io.StringIO()), width=400).print(possible_table(found, one))
        texts.append(out.getvalue())
    assert f"the {gap:+,} cycles of 8 layers no counter covers (+7,885 are outside" in texts[0]
    assert f"the {gap:+,} cycles no counter covers;" in texts[1]


def test_nanoseconds_are_written_in_the_unit_that_suits_them():
    found = explain(account(factors=(1.0, 1.4, 1.0)))
    timed = dataclasses.replace(account(factors=(1.0, 1.4, 1.0)), quantity="time", unit="ns")
    Console(file=(out := io.StringIO()), width=400).print(possible_table(found, timed))
    said = f"prices that could explain the +{format_time(timed.total.gap / 1e3)} no counter covers"
    assert said in out.getvalue() and " ns" not in out.getvalue()


def test_the_same_shares_in_every_layer_tell_no_cause():
    shares = np.outer(AMOUNTS.sum(axis=1), (0.4, 0.35, 0.25))
    found = explain(account(shares, (1.0, 1.3, 1.0)))
    assert found[0].probability < 0.7 and found[1].probability > 0.1


def test_a_price_that_is_settled_leaves_the_other():
    """As micro-benchmarks settle what a wait costs: cycles alone could not say."""
    amounts = AMOUNTS.copy()
    amounts[:, 2] = amounts[:, 1]  # one waits for each load
    made = account(amounts, (1.0, 1.0, 1.3))
    unsure = {one.cause: one.probability for one in explain(made)}
    assert 0.1 < unsure["flash_wait"] < 0.9 and 0.1 < unsure["load_store"] < 0.9
    settled = explain(made, load_store=0.01)
    assert settled[0].cause == "flash_wait" and settled[0].probability > 0.8


def test_intervals_hold_planted_prices_as_often_as_they_say():
    hits = total = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        logs = random.normal(0, [UNSURE[cause] for cause in CAUSES])
        kernels = np.exp(random.normal(0, KERNEL_ERRORS.common)
                         + random.normal(0, KERNEL_ERRORS.layer, 8))
        plain = account(factors=np.exp(logs))
        rows = tuple(dataclasses.replace(row, second=round(row.second * factor))
                     for row, factor in zip(plain.rows, kernels, strict=True))
        made = dataclasses.replace(plain, rows=rows)
        found = {one.cause: one for one in explain(made)}
        for place, cause in enumerate(CAUSES):
            truth = float((AMOUNTS[:, place] * np.expm1(logs[place])).sum())
            hits += found[cause].low <= truth <= found[cause].high
            total += 1
    assert 0.7 < hits / total < 0.97  # of 90 %; logarithms of large changes are not sums


def test_what_is_counted_or_equal_asks_for_no_explanation():
    assert explain(account()) == ()
    counted = explain(account(factors=(1.0, 1.0, 1.4), counted=("flash_wait",)))
    assert "flash_wait" not in {one.cause for one in counted}
    assert explain(account(factors=(1.0, 1.0, 1.4), counted=CAUSES)) == ()


def test_layers_no_prices_fit_are_the_kernels():
    """Other kernels run in every second pair of layers: no price is blamed for certain."""
    odd = {one.cause: one.probability for one in explain(account(own=0.4))}
    assert odd[KERNELS] > 0.2 and max(odd.values()) < 0.8


def test_learnt_prices_are_surer_than_assumed_ones():
    assert price_sds(None)["flash_wait"] == PRICE_SD["flash_wait"]
    shipped = shipped_calibration(load_board("nucleo_l4r5zi"), "tflm-cmsis-nn@2.3.1")
    names = shipped.time.names
    sure = np.diag([0.01**2 if name == "memory" else 4.0 for name in names])
    settled = price_sds(dataclasses.replace(shipped, time=dataclasses.replace(
        shipped.time, covariance=sure)))
    assert settled["flash_wait"] == pytest.approx(0.01)
    assert settled["load_store"] == PRICE_SD["load_store"]


@pytest.mark.parametrize(("factors", "mostly"), [
    ((2.0, 2.0), ""), ((2.0, 1.0), "conv_2d"), ((1.0, 2.0), "depthwise_conv_2d")])
def test_an_operator_is_named_where_its_layers_are_off_more_than_others(factors, mostly):
    """What slows all layers alike was called kernels of the operator that takes most time."""
    ratios = dict(zip(OPS[:2], factors, strict=True))
    rows = tuple(dataclasses.replace(row, second=round(row.first * ratios[row.op]))
                 for row in account(AMOUNTS * np.where(np.arange(8) % 2, 1.0, 3.0)[:, None]).rows)
    kernels = next(one for one in explain(Account(quantity="cycles", unit="cycles", rows=rows))
                   if one.cause == KERNELS)
    assert kernels.mostly == mostly
    out = io.StringIO()
    Console(file=out, width=200).print(possible_table([kernels], account()))
    assert (f"kernels of {mostly}" if mostly else "none of these prices, all layers alike") in (
        out.getvalue())
    assert "or a fault of the set-up, which `twin diagnose` weighs" in out.getvalue()


def test_layers_that_are_off_by_unlike_amounts_are_not_called_alike():
    """Ratios of 0.07 to 1.09 were "none of these prices, all layers alike, 100 %"."""
    rows = tuple(dataclasses.replace(row, second=round(row.first * (3.0 if row.index % 4 < 2
                                                                    else 1.0)))
                 for row in account().rows)
    kernels = next(one for one in explain(Account(quantity="cycles", unit="cycles", rows=rows))
                   if one.cause == KERNELS)
    assert not kernels.mostly
    out = io.StringIO()
    Console(file=out, width=200).print(possible_table([kernels], dataclasses.replace(
        account(), rows=rows)))
    assert "none of these prices, " in out.getvalue() and "alike" not in out.getvalue()
