"""The table of speeds: what is met, what is compared with an earlier run, who makes the rows."""

from __future__ import annotations

import json

import pytest

from benchmarks.speed import __main__ as table
from benchmarks.speed.row import Row

SECONDS = Row(name="command", figure=0.5, unit="s", peer="vela", theirs=0.4, limit=0.45,
              ratio_limit=1.3, events={"cycles": 7})
RATE = Row(name="caches", figure=900.0, unit="M/s", peer="pycachesim", theirs=100.0, limit=500.0)


@pytest.mark.parametrize(("row", "met"), [
    (SECONDS, False), (RATE, True),
    (Row(name="a", figure=0.4, unit="s", theirs=0.4, limit=0.45, ratio_limit=1.3), True),
    (Row(name="a", figure=0.4, unit="s", theirs=0.2, limit=0.45, ratio_limit=1.3), False),
    (Row(name="a", figure=0.4, unit="s", peer="gone", limit=0.45, ratio_limit=1.3), None),
    (Row(name="a", figure=100.0, unit="M/s", theirs=10.0, ratio_limit=12.0), False),
    (Row(name="a", figure=0.4, unit="s"), None)])
def test_a_row_says_whether_all_it_aims_at_is_met(row, met):
    assert row.met is met


def test_a_row_shows_peer_ratio_target_and_events():
    first, second = table.show(SECONDS, {"figure": 1.0}).splitlines()
    for word in ("command", "0.5 s", "0.4 vela", "1.25 x", "<= 0.45 s, <= 1.3 x", "no"):
        assert word in first
    assert second.strip() == "7 cycles; 0.50 x of before"


def test_a_run_is_kept_and_a_count_that_differs_is_an_error(tmp_path, monkeypatch, capsys):
    rows = [RATE]
    monkeypatch.setattr(table, "measure_rows", lambda modules: iter(rows))
    kept = tmp_path / "run.json"
    assert table.main(["--json", str(kept)]) == 0
    assert json.loads(kept.read_text())["rows"][0]["ratio"] == 9.0
    assert table.main(["--against", str(kept)]) == 0
    rows[:] = [Row(name="caches", figure=900.0, unit="M/s", events={"misses": 1})]
    assert table.main(["--against", str(kept)]) == 1
    assert "counts differ: caches: {} before, {'misses': 1} now" in capsys.readouterr().err


def test_rows_come_from_the_modules_named_so(capsys):
    assert {"bus", "cache", "command", "npu"} <= set(table.list_modules())
    with pytest.raises(SystemExit):
        table.main(["nothing"])
    assert "accepted: batch, bus, cache, command, npu" in capsys.readouterr().err
