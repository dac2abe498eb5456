"""Columns of lines: what is made of them, and sums of them, equal lines made one by one."""

import itertools
import math
import pickle
import random

import numpy as np
import pytest

from hwmodels.columns import (
    BillColumns,
    ColumnBill,
    ColumnCounts,
    CountColumns,
    Keys,
    sum_exactly,
)
from hwmodels.counts import EVENTS, Bill, Counts, merge_bills

CLOCKS = ("npu", "cpu")


def make_columns(rng: random.Random, owners: int) -> tuple[CountColumns, BillColumns]:
    """Columns of a few owners: none, some or many lines, whole and broken amounts."""
    keys = Keys()
    for _ in range(12):
        keys.number(rng.choice([*EVENTS]), rng.choice(("", "ram", "flash")),
                    rng.choice(("", "weights")))
    numbers = [sorted(rng.sample(range(len(keys.known)), rng.randrange(len(keys.known))))
               for _ in range(owners)]
    first = np.cumsum([0, *map(len, numbers)])
    key = np.array([one for own in numbers for one in own], int)
    whole = rng.random() < 0.5
    occurred, exposed, cycles, energy = (np.array(
        [rng.randrange(9) if whole else rng.uniform(0, 1e6) for _ in key]) * 1.0
        for _ in range(4))
    if rng.random() < 0.3 and len(energy):
        energy[rng.randrange(len(energy))] = np.nan
    counts = CountColumns(keys=keys, first=first, key=key, occurred=occurred, exposed=exposed)
    clock = np.array([number % 2 for number in key], int)
    sums = [sum_exactly(np.where(clock == one, cycles, 0.0), first) for one in range(2)]
    passed = tuple({name: spent for name, spent in zip(CLOCKS, own, strict=True) if spent}
                   for own in zip(*sums, strict=True))
    return counts, BillColumns(
        keys=keys, clocks=CLOCKS, first=first, key=key, clock=clock, occurred=occurred,
        exposed=exposed, cycles=cycles, energy_pj=energy, passed=passed)


@pytest.mark.parametrize("seed", range(20))
def test_columns_are_the_lines_made_of_them(seed) -> None:
    rng = random.Random(seed)
    counts, bills = make_columns(rng, 5)
    made = []
    for owner in range(5):
        count, plain = ColumnCounts(counts, owner), Counts(counts.make_lines(owner))
        assert count == plain and plain == count and hash(count) == hash(plain)
        assert repr(count) == repr(plain) and pickle.loads(pickle.dumps(count)) == plain
        lines = Bill(bills.make_lines(owner))
        bill = ColumnBill(bills, owner, lines.energy_pj())
        assert bill == lines and lines == bill and hash(bill) == hash(lines)
        assert repr(bill) == repr(lines) and pickle.loads(pickle.dumps(bill)) == lines
        assert bill.clock_cycles() == lines.clock_cycles()
        assert bill.energy_pj("mac") == lines.energy_pj("mac")
        made.append((bill, lines))
    plain_bill = Bill(make_columns(rng, 1)[1].make_lines(0))
    merged = merge_bills([*(bill for bill, _ in made), plain_bill])
    assert merged == merge_bills([*(lines for _, lines in made), plain_bill])
    assert merge_bills([]) == Bill()


@pytest.mark.parametrize("whole", [True, False])
def test_runs_are_summed_as_if_exactly(whole) -> None:
    rng = random.Random(7)
    values = np.array([rng.randrange(1 << 20) / 64 if whole else rng.uniform(-1e9, 1e-9)
                       for _ in range(200)])
    first = np.array([0, 0, 3, 150, 150, 200, 200])
    assert sum_exactly(values, first) == [
        math.fsum(values[a:b].tolist()) for a, b in itertools.pairwise(first)]
    assert sum_exactly(values[:0], np.zeros(4, int)) == [0.0] * 3
