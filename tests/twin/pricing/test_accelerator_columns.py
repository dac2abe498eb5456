"""Epochs priced all at once equal epochs priced one by one."""

import dataclasses

import pytest
from plain_pricing import add_time_plainly, split_plainly

import twin
from hwmodels.counts import Counts, make_bill, merge_bills
from twin.deployment.accelerator.plan import plan_of
from twin.pricing.accelerator import costs
from twin.pricing.inference import predict
from twin.pricing.lines import price_on_core, runtime_prices


@pytest.mark.parametrize(("network", "changes"), [
    ("ic", {}), ("vww", {"npu.epoch_controller": "true"}),
    ("kws", {"offload.host": "fully_connected"})])
def test_parts_are_those_of_epochs_priced_alone(network, changes) -> None:
    deployment = twin.deploy(network, "stm32n6570_dk", runtime="neural-art").replace(changes)
    prices, board = runtime_prices(deployment), deployment.board
    layers, tasks = costs.price_schedule(deployment, prices, price_on_core)
    alone: dict[int, list] = {}
    for epoch in tasks:
        plain = Counts(tuple(epoch.run.counts.lines))
        for position, counts in zip(epoch.step.layers, split_plainly(plain, epoch.step.shares),
                                    strict=True):
            bill = add_time_plainly(make_bill(counts, prices), board, prices)
            alone.setdefault(position, []).append((counts, bill, epoch.kind))
    split = 0
    for position, parts in alone.items():
        if len(parts) == 1 and parts[0][2] == "hw":
            (counts, bill, _), split = parts[0], split + 1
            assert layers[position].counts == counts and layers[position].bill == bill
    assert split > 3
    assert network != "ic" or any(len(epoch.step.layers) > 1 for epoch in tasks)
    made = predict(deployment)
    assert made.bill == merge_bills(layer.bill for layer in made.layers)
    assert len(plan_of(deployment).steps) >= len(tasks)


def test_causes_of_several_clocks_are_compared_in_seconds() -> None:
    """A clock next to still has the largest cause, whichever of them it is."""
    made = predict(twin.deploy("kws", "stm32n6570_dk"))
    layer = next(one for one in made.layers if one.bill.cycles("npu") and one.bill.cycles("cpu"))
    for slow in ("npu", "cpu"):
        hz = tuple((name, 1.0 if name == slow else 1e12) for name, _ in layer.clocks_hz)
        cycles = {cause: count for (clock, cause), count in layer.bill.by_cause().items()
                  if clock == slow}
        found = dataclasses.replace(layer, clocks_hz=hz).largest_cause
        assert cycles[found] == max(cycles.values())
