"""The table of speeds: what is met, what is compared with an earlier run, who makes the rows."""

from __future__ import annotations

import importlib
import json
import pkgutil

import pytest

from benchmarks import speed
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
    for word in ("command", "0.5 s", "0.4 s", "1.25 x", "<= 0.45 s, <= 1.3 x", "no"):
        assert word in first
    assert second.strip() == "beside vela, 7 cycles; 0.50 x of before"


@pytest.mark.parametrize(("figure", "text"), [
    (3124.7, "3125"), (0.000863, "8.6e-04"), (0.0235, "0.0235"), (16.42, "16.4")])
def test_a_figure_has_three_digits(figure, text):
    assert table.to_text(figure) == text


def test_rows_fit_a_hundred_columns():
    long = Row(name="accelerator, ten clocks of either x factors", figure=123456.0, unit="M/s",
               peer="predict, one by one", theirs=123456.0, limit=2000.0, ratio_limit=12.0,
               events={"accesses": 101_128_218, "misses": 5_873_806})
    for line in table.show(long, None).splitlines():
        assert len(line) <= 100


@pytest.mark.parametrize("content", [None, "{", "{}", '{"rows": [1]}', '{"rows": [{"name": "a"}]}'])
def test_a_run_that_is_none_is_refused_in_one_line(tmp_path, capsys, content):
    kept = tmp_path / "run.json"
    if content is not None:
        kept.write_text(content)
    with pytest.raises(SystemExit, match="2"):
        table.main(["--against", str(kept)])
    assert str(kept) in capsys.readouterr().err.splitlines()[-1]


def test_where_no_run_can_be_kept_nothing_is_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "measure_rows", lambda modules: pytest.fail("timed"))
    for place in (tmp_path, tmp_path / "none" / "run.json"):
        with pytest.raises(SystemExit, match="2"):
            table.main(["--json", str(place)])


def test_rows_named_twice_are_timed_once(monkeypatch):
    seen = []
    monkeypatch.setattr(table, "measure_rows", lambda modules: seen.extend(modules) or iter([]))
    assert table.main(["cache", "bus", "cache"]) == 0
    assert seen == ["cache", "bus"]


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


@pytest.mark.parametrize("name", [one.name for one in pkgutil.iter_modules(speed.__path__)])
def test_no_module_of_the_table_asks_for_what_is_gone(name):
    importlib.import_module(f"benchmarks.speed.{name}")
