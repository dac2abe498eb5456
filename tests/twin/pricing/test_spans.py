"""Spans of clocks and voltages are the boards that would be made one by one, from a few of them."""

from __future__ import annotations

import numpy as np
import pytest

import twin
from hwmodels.board.operating_points import spread_clocks, spread_supply
from twin.pricing import spans
from twin.pricing.batch import Failure
from twin.pricing.variation import read_variation


@pytest.fixture
def made(monkeypatch) -> list:
    """What boards are asked for."""
    asked: list = []
    real = spans.boards_of

    def boards_of(base, settings):
        change = real(base, settings)
        return lambda more: (asked.append(more), change(more))[1]

    monkeypatch.setattr(spans, "boards_of", boards_of)
    return asked


def list_spans(base, vary):
    variation = read_variation(vary)
    return list(spans.list_spans(base, variation, np.arange(variation.rows)))


def test_a_span_is_the_boards_of_its_rows(made) -> None:
    """Four voltage scales and the wait states of each, at supply voltages within their bounds."""
    rng, base = np.random.default_rng(5), twin.deploy("kws", "nucleo_l4r5zi")
    vary = {"clocks.cpu.frequency_hz": rng.uniform(1e6, 125e6, 400),
            "supply.voltage_v": rng.choice([1.8, 2.0, 3.3], 400)}
    found = list_spans(base, vary)
    assert len(made) < 120 and sum(len(one.rows) for one in found
                                   if not isinstance(one, Failure)) > 350
    waits = set()
    for one in found:
        row = one.row if isinstance(one, Failure) else int(one.rows[-1])
        own = {name: float(values[row]) for name, values in vary.items()}
        if isinstance(one, Failure):
            with pytest.raises(type(one.error)) as raised:
                base.replace(own)
            assert str(raised.value) == str(one.error)
            continue
        wanted, board = base.replace(own).board, one.deployment.board
        moved = spread_clocks(board, {"cpu": own["clocks.cpu.frequency_hz"]})
        assert (moved.clocks, moved.memories) == (wanted.clocks, wanted.memories)
        assert spread_supply(board, own["supply.voltage_v"]) == wanted.power
        waits.add((wanted.power.voltage_scale, wanted.memory("flash").wait_states))
    assert len(waits) > 6


def test_two_clocks_are_cut_where_either_is_forbidden(made) -> None:
    rng, base = np.random.default_rng(6), twin.deploy("ad", "stm32n6570_dk", runtime="neural-art")
    vary = {"clocks.cpu.frequency_hz": rng.uniform(1e8, 1e9, 300),
            "clocks.npu.frequency_hz": rng.uniform(1e8, 1.2e9, 300)}
    found = list_spans(base, vary)
    able = (vary["clocks.cpu.frequency_hz"] <= 8e8) & (vary["clocks.npu.frequency_hz"] <= 1e9)
    whole = np.sort(np.concatenate([one.rows for one in found if not isinstance(one, Failure)]))
    assert whole.tolist() == np.flatnonzero(able).tolist()
    refused = {one.row: str(one.error) for one in found if isinstance(one, Failure)}
    assert len(refused) == 300 - len(whole) and len(made) < 60
    for row in list(refused)[::25]:
        with pytest.raises(twin.TwinError) as raised:
            base.replace({name: float(values[row]) for name, values in vary.items()})
        assert refused[row] == str(raised.value)
