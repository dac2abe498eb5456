"""The cache simulator against rows checked with Valgrind (how: benchmarks/exactness/README.md)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from cache_traces import (
    LAYERS,
    count_dirty,
    hash_trace,
    list_accesses,
    make_layer,
    stamp_lines,
)

from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import METHODS, new_state, simulate_nests

with Path(__file__).with_name("cache_golden.csv").open() as _file:
    ROWS = list(csv.DictReader(_file))


@pytest.mark.parametrize("layer", LAYERS)
def test_equals_cachegrind(layer):
    """Trace, misses and write-backs are those of the program cachegrind ran."""
    rows = [row for row in ROWS if row["layer"] == layer]
    assert len(rows) == 10
    for row in rows:
        nests, operands = make_layer(layer, int(row["base_address"], 16))
        accesses = list_accesses(nests, operands)
        assert hash_trace(accesses) == row["trace"] and len(accesses) == int(row["accesses"])
        cache = Cache(name="l1d", size_bytes=int(row["size_bytes"]), ways=int(row["ways"]),
                      line_bytes=int(row["line_bytes"]))
        wanted = [int(row["read_misses"]), int(row["write_misses"]), int(row["write_backs"])]
        for method in METHODS:
            counts, state = simulate_nests(cache, nests, operands, new_state(cache),
                                           method=method)
            left = counts.write_backs() + count_dirty(state)
            assert [counts.total("read_misses"), counts.total("write_misses"), left] == wanted


def test_whole_program_misses_are_more():
    """The rows keep cachegrind's own figures, start-up of the process included."""
    for row in ROWS:
        assert int(row["cachegrind_read_misses"]) >= int(row["read_misses"])
        assert int(row["cachegrind_write_misses"]) >= int(row["write_misses"])


def test_time_stamps_by_hand():
    """load A, load B, store A, load C, load A in one set of two ways: A, B and C miss; the store
    leaves A dirty and most recent, so C replaces B, and A is written back at the end."""
    pair = Cache(name="pair", size_bytes=64, ways=2, line_bytes=32)
    sequence = [(False, 0, 4), (False, 32, 4), (True, 0, 4), (False, 64, 4), (False, 0, 4)]
    assert stamp_lines(sequence, pair) == ([3, 0], [3, 0], 1)
