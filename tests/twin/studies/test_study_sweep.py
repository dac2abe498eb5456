"""A sweep from points to a file: the figures of `predict`, refusals as rows, limits, a front."""

from __future__ import annotations

import os
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

import twin
from hwmodels.processes import map_forked
from twin.errors import UsageError
from twin.reports.tables.studies import write_legend
from twin.studies import sweep
from twin.studies.axes import make_space
from twin.studies.limits import read_limits
from twin.studies.points import Deployer
from twin.studies.results import read_objectives
from twin.studies.rows import judge
from twin.studies.sweep import cut_chunks, hold, share_draws, sweep_space
from twin.studies.table_files import read_table


@pytest.fixture(scope="module")
def told() -> list:
    return []


@pytest.fixture(scope="module")
def table(told):
    space = make_space(["ad"], ["nucleo_h7a3zi_q", "nucleo_f401re"],
                       clocks=["own", "80MHz"], settings={"placement.arena": "sram,dtcm"})
    return sweep_space(space, limits=read_limits(max_ms="3ms", max_ram="64KiB"),
                       on_progress=lambda *state: told.append(state))


def test_a_row_says_what_predict_says(table) -> None:
    row = next(row for row in table.rows
               if dict(row.inputs)["clock"] == "80MHz" and not row.failure
               and row.board == "nucleo_h7a3zi_q")
    deployment = twin.deploy("ad", "nucleo_h7a3zi_q", clock_hz=80e6, arena=row.arena)
    prediction = twin.predict(deployment)
    assert row.time_us == pytest.approx(prediction.time_us, rel=1e-12)
    assert row.energy_uj == pytest.approx(prediction.energy_uj, rel=1e-12)
    assert row.time.high == pytest.approx(prediction.certainty.time_us.high, rel=1e-12)
    assert (row.ram_bytes, row.flash_bytes) == (prediction.ram_bytes, prediction.flash_bytes)
    # The board's file allows 80 MHz at its lowest scale, VOS3.
    assert (row.voltage_scale, row.runtime) == ("vos3", deployment.runtime.identity)


def test_every_figure_of_a_clock_is_that_of_the_clock_alone() -> None:
    # Four and more clocks were one batch once, whose rows had the first one's set-up time.
    clocks = ["20MHz", "21MHz", "22MHz", "23MHz"]
    together = sweep_space(make_space(["ad"], ["nucleo_h7a3zi_q"], clocks=clocks)).rows
    alone = [sweep_space(make_space(["ad"], ["nucleo_h7a3zi_q"], clocks=[clock])).rows[0]
             for clock in clocks]
    assert [row.variables for row in together] == [row.variables for row in alone]
    assert len({dict(row.variables)["setup_us"] for row in together}) == len(clocks)


def test_refusals_are_rows_with_their_reason(table, told) -> None:
    assert len(table.rows) == 8 and told[-1] == (8, 8, 2)
    assert {row.board for row in table.failed} == {"nucleo_f401re"}
    assert all("no memory 'dtcm'" in row.reason and row.time_us is None for row in table.failed)


def test_limits_are_judged_and_can_be_changed(table) -> None:
    assert all(("time_us" in row.violations) == (row.time_us > 3000) for row in table.predicted)
    assert all(0 <= row.probability <= 1 for row in table.predicted)
    assert table.met and table.best("energy_uj") in table.met
    loose = hold(table, read_limits(max_ms="1s"))
    assert len(loose.met) == len(table.predicted)


@pytest.mark.parametrize("name", ["table.parquet", "table.csv"])
def test_tables_come_back_from_files(table, tmp_path, name: str) -> None:
    path = table.write(tmp_path / "new" / name)
    assert read_table(path).rows == table.rows
    assert [one.name for one in path.parent.iterdir()] == [name]


def test_other_files_are_refused(table, tmp_path) -> None:
    with pytest.raises(UsageError, match=r"\.parquet or \.csv"):
        table.write(tmp_path / "table.xlsx")
    (tmp_path / "none.parquet").write_text("no table")
    with pytest.raises(UsageError, match="not a table of a study"):
        read_table(tmp_path / "none.parquet")


def test_a_model_that_is_none_is_a_row_too() -> None:
    rows = sweep_space(make_space(["nothing.tflite"], ["nucleo_l4r5zi"])).rows
    assert rows[0].failure and "nothing.tflite" in rows[0].reason


def test_chunks_keep_order_and_one_board_each() -> None:
    points = make_space(["m"], ["a", "b"], settings={"x": list(range(40))}).list_points()
    chunks = list(cut_chunks(points))
    assert [one for chunk in chunks for one in chunk] == list(points)
    assert all(len({one["board"] for one in chunk}) == 1 for chunk in chunks)


def test_what_holds_in_every_point_is_said_once() -> None:
    deployer = Deployer(calibration="none", defaults={"clock": "20MHz"})
    row, = deployer.predict(make_space(["ad"], ["nucleo_l4r5zi"]).list_points())
    assert row.clock_hz == 20e6 and row.time is None and row.basis == ""


def test_objectives_have_names() -> None:
    assert read_objectives(["time", "energy", "usd"]) == ("time_us", "energy_uj", "price_usd")
    with pytest.raises(UsageError, match="objective"):
        read_objectives(["beauty"])


def test_the_lines_of_the_page_run(capsys) -> None:
    page = (Path(__file__).parents[3] / "docs" / "decide.md").read_text(encoding="utf-8")
    names: dict = {}
    exec(compile(textwrap.dedent(page.split("## In Python")[1]), "decide.md", "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert names["table"].met and names["advice"].best.effort == "setting"
    # Half the width and the whole are two networks, each with a front of its own.
    widths = {dict(row.inputs)["network.width"] for row in names["table"].rows if row.front}
    assert widths == {"0.5", "1"} and not names["table"].failed


def test_changes_that_keep_every_answer_compete() -> None:
    table = twin.sweep("kws", "nucleo_u575zi_q", settings={
        "network.fusion": ["all", "none"], "network.batch": [1, 2]})
    marks = {(dict(row.inputs)["network.batch"], dict(row.inputs)["network.fusion"]): row.front
             for row in table.rows}
    assert marks["1", "all"] == marks["2", "all"] == "front"
    assert marks["1", "none"] == marks["2", "none"] == "possible"
    (legend,) = write_legend(table, table.rows)
    assert "(network.batch makes another)" in legend


def test_tables_that_are_bombs_are_refused(table, tmp_path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = table.to_arrow().schema.names
    one = {name: [None] * 1000 for name in columns if name != "model"}
    words = {"model": arrow.DictionaryArray.from_arrays([0] * 1000, ["x" * 1_000_000])}
    bombs = {"words": arrow.table({**one, **words}),
             "rows": arrow.table({f"c{name}": arrow.nulls(1_000_000, arrow.int8())
                                  for name in range(5)}),
             "columns": arrow.table({f"c{name}": [1] for name in range(2000)})}
    for name, bomb in bombs.items():
        parquet.write_table(bomb, path := tmp_path / f"{name}.parquet")
        with pytest.raises(UsageError, match="at most"):
            read_table(path)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(UsageError, match="regular file"):
        read_table(tmp_path / "pipe.csv")
    (tmp_path / "wide.csv").write_text("," * 5000)
    with pytest.raises(UsageError, match="at most"):
        read_table(tmp_path / "wide.csv")


def test_a_table_follows_no_planted_link(table, tmp_path) -> None:
    (tmp_path / "victim").write_text("kept")
    (tmp_path / ".t.csv.part").symlink_to(tmp_path / "victim")
    table.write(tmp_path / "t.csv")
    assert (tmp_path / "victim").read_text() == "kept" and not (tmp_path / "t.csv").is_symlink()


def test_clocks_predicted_at_once_are_rows_as_each_alone() -> None:
    """Across voltage scales and wait states, with a clock that cannot be in their midst."""
    points = [{"model": "ad", "board": "nucleo_h7a3zi_q", "clock": clock}
              for clock in ("60MHz", "280MHz", "900MHz", "88MHz", "151.3MHz", "225MHz")]
    together, alone = Deployer(), Deployer()
    for point, row in zip(points, together.predict(points), strict=True):
        other, = alone.predict([point])
        assert (row.inputs, row.failure, row.reason, row.voltage_scale, row.clock_hz, row.basis,
                row.ram_bytes, row.ram_room_bytes) == (
            other.inputs, other.failure, other.reason, other.voltage_scale, other.clock_hz,
            other.basis, other.ram_bytes, other.ram_room_bytes)
        if not row.failure:
            assert (row.time_us, row.energy_uj, row.time.high, row.overhead_us) == pytest.approx(
                (other.time_us, other.energy_uj, other.time.high, other.overhead_us), rel=1e-12)
    assert len({row.voltage_scale for row in together.predict(points)}) > 2


def test_many_boards_are_predicted_by_several_processes_as_by_one(monkeypatch) -> None:
    boards = ["nucleo_l4r5zi", "nucleo_f401re", "rpi_pico"]
    space = make_space(["ad"], boards, runtimes=["tflm-cmsis-nn@2026", "neural-art@2.0.0"])
    told: list[tuple[int, int, int]] = []
    alone = sweep_space(space)
    monkeypatch.setattr(sweep, "FEWEST_PARTS", 2)
    monkeypatch.setattr("hwmodels.processes.os.sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr("hwmodels.processes.threading.active_count", lambda: 1)
    assert sweep_space(space, on_progress=lambda *how: told.append(how)) == alone
    assert told == [(2, 6, 1), (4, 6, 2), (6, 6, 3)]


def test_an_error_of_a_forked_process_is_raised_here(monkeypatch) -> None:
    monkeypatch.setattr("hwmodels.processes.os.sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr("hwmodels.processes.threading.active_count", lambda: 1)
    own = os.getpid()
    assert own not in list(map_forked(lambda item: os.getpid(), range(4)))
    with pytest.raises(ZeroDivisionError):
        list(map_forked(lambda item: 1 // item, [1, 0]))
    reading, writing = os.pipe()
    made = map_forked(lambda item: item and os.read(reading, 1), range(3))
    assert next(made) == 0
    with pytest.raises(KeyboardInterrupt):
        made.throw(KeyboardInterrupt)  # ends though nobody writes what the others wait for
    os.close(reading)
    os.close(writing)


def test_a_slower_placement_never_meets_a_time_more_surely_than_a_faster_one() -> None:
    """Its waits may be long, so its interval, and the tail below it, is the wider by far."""
    found = twin.sweep("ad", "rpi_pico2", settings={"placement.weights": "flash,sram"}, max_ms=3)
    slow, fast = found.rows
    assert slow.time_us > 2 * fast.time_us and slow.time.high > 10 * fast.time.high
    alone = judge(slow, found.limits).probability
    assert alone > 1.5 * fast.probability
    assert fast.probability <= slow.probability <= fast.probability + 1e-5
    assert fast == replace(judge(fast, found.limits), front=fast.front)
    there = share_draws([judge(slow, found.limits), replace(fast, board="another")], found.limits)
    assert there[0].probability == alone


def test_check_says_what_a_row_says_of_several_limits() -> None:
    deployment = twin.deploy("kws", "nucleo_l4r5zi")
    limits = {"max_ms": 45, "max_uj": "1.9mJ"}
    checked, row = twin.check(deployment, **limits), twin.sweep(
        "kws", "nucleo_l4r5zi", **limits).rows[0]
    assert checked.probability == row.probability and row.meets == "no, may be within"
    assert {one.verdict for one in checked.requirements[2:]} == {"not met, may be within"}
    assert row.probability < min(1 - one.chance_above for one in checked.requirements[2:])
    assert twin.check(deployment, max_ms=45).probability is None
    assert twin.to_document(checked)["probability"] == row.probability
    assert "probability" not in twin.to_document(twin.check(deployment, max_ms=45))
    shut = twin.check(deployment, **limits, max_ram_bytes="8KiB")
    assert shut.probability == 0.0
