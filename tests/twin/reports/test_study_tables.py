"""Tables and pictures of studies at 80 columns and wide."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

import twin
from calibration.fitting.intervals import Interval
from twin.errors import UsageError
from twin.pricing.requirement import Requirement
from twin.reports.page.studies import describe_table
from twin.reports.tables.limits import requirement_table
from twin.reports.tables.selection import selection_report
from twin.reports.tables.studies import summarise, sweep_report
from twin.reports.tables.study_sentences import describe_row, list_winners, rank_rows
from twin.studies.limits import Limits
from twin.studies.results import Table, list_columns
from twin.studies.rows import Row
from twin.studies.sweep import make_table


def row(time: float, energy: float | None, board: str = "nucleo_h7a3zi_q", **more: object) -> Row:
    def around(value: float) -> Interval:
        return Interval(low=0.8 * value, high=1.25 * value, level=0.9)

    return Row(**{"model": "cnn", "runtime": "x-cube-ai@10.2.0", "clock_hz": 280e6,
                  "inputs": (("model", "cnn"), ("board", board)),
                  "voltage_scale": "range1_boost", "board": board, "time_us": time,
                  "time": around(time), "energy_uj": energy, "ram_bytes": 4096,
                  "energy": None if energy is None else around(energy), "flash_bytes": 65536,
                  **more})


def made(*rows: Row, limits: Limits | None = None) -> Table:
    return make_table(rows, limits=limits or Limits(), objectives=("time_us", "energy_uj"),
                      axes=("model", "board"))


def printed(table: Table, width: int) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(sweep_report(table, console))
    return console.export_text()


TABLE = made(row(9e4, 4e3), row(3e4, 2e3, "nucleo_u575zi_q", clock_hz=160e6, voltage_scale="r1",
                                  runtime="x-cube-ai@7.3.0"), row(2e5, None, "stm32h747i_disco"),
             row(5e3, 1e3, failure="runtime", reason="no"),
             limits=Limits(max_time_us=1e5, max_energy_uj=5e3))


def test_rows_fit_eighty_columns_with_their_intervals() -> None:
    text = printed(TABLE, 80)
    line = next(line for line in text.splitlines() if line.startswith("** nucleo_u575zi_q"))
    assert "30 +25%" in line and "2 +25%" in line and line.rstrip().endswith("99.9%")
    assert max(map(len, text.splitlines())) <= 80


def test_a_wide_table_has_both_ends_of_intervals() -> None:
    assert "24-37.5" in printed(TABLE, 160) and "+25%" not in printed(TABLE, 160)


def test_marks_of_what_may_be_on_the_front_say_what_is_not_cancelled() -> None:
    text = " ".join(printed(made(row(10, 10), row(10.1, 10.1)), 200).split())
    assert "~ for some values within the intervals, each row's by itself (what rows of one " in text


def test_a_limit_far_below_is_said_in_times() -> None:
    drawn = requirement_table([Requirement(name="time", unit="ms", predicted=5000.0, limit=1.0),
                               Requirement(name="time", unit="ms", predicted=50.0, limit=100.0)])
    assert [cells[3] for cells, _ in drawn.rows] == ["5e+03 x", "50 %"]


def test_those_that_meet_the_limits_come_first() -> None:
    assert [one.board for one in rank_rows(TABLE)] == [
        "nucleo_u575zi_q", "nucleo_h7a3zi_q", "stm32h747i_disco"]
    first, *rest = summarise(TABLE)
    assert first == ("4 configurations, 1 infeasible; 2 meet 100 ms, 5 mJ "
                     "(1 with 90% or more); 1 does not")
    assert rest[-1].startswith("most probable, fastest, least energy: nucleo_u575zi_q")


def test_the_most_probable_is_the_one_whose_probability_is_largest() -> None:
    """Rows of the same whole per cent are in order of their time; the words name one row."""
    fast, sure = row(9e4, 1e3), row(9.1e4, 1e3, "nucleo_u575zi_q")
    table = made(fast, sure, limits=Limits(max_time_us=1e5))
    table = dataclasses.replace(table, rows=tuple(
        dataclasses.replace(one, probability=chance) for one, chance in zip(
            table.rows, (0.908, 0.914), strict=True)))
    assert [one.board for one in rank_rows(table)] == [fast.board, sure.board]
    winners = dict(list_winners(table))
    assert winners["most probable"].board == sure.board
    assert winners["fastest"].board == fast.board
    assert "by whole % of probability, then by time" in printed(table, 100)


def test_what_only_an_unknown_figure_decides_may_meet_the_limits() -> None:
    table = made(row(9e4, 9e3), row(9e4, None, "rpi_pico"), row(2e5, None, "esp32c3_devkitm"),
                 limits=TABLE.limits)
    assert [one.verdict for one in table.rows] == ["no", "may", "no"]
    assert rank_rows(table)[0].board == "rpi_pico"
    assert summarise(table)[0] == ("3 configurations; 0 meet 100 ms, 5 mJ; 1 may (energy not "
                                   "known); 2 do not")
    text = printed(table, 120)
    assert next(line for line in text.splitlines() if "rpi_pico" in line).endswith(" may")
    assert [list_columns(one)["meets"] for one in table.rows] == ["no", "may", "no"]


def test_what_varies_has_a_column_though_one_value_of_it_was_predicted() -> None:
    def at(precision: str, time: float, **more: object) -> Row:
        return row(time, 1e3, inputs=(("model", "cnn"), ("network.precision", precision),
                                      ("clock", f"{time:g}")), clock_hz=1e11 / time, **more)

    table = made(at("float32", 9e5), at("float32", 8e5, energy_uj=900.0),
                 at("int8", 1e5, failure="does not fit", reason="too small"))
    assert "network.precision float32" in summarise(table)[-1]
    assert "precision" in printed(table, 120) and "float32" in printed(table, 120)


def test_rows_placed_differently_have_a_column_of_it() -> None:
    inside = row(9e4, 4e3, weights="flash", arena="sram")
    table = made(inside, row(9e4, 4e3, weights="sdram", arena="sram+sdram"))
    assert all(word in printed(table, 120) for word in (
        "placement", "flash/sram", "sdram/sram+sdram"))
    assert "placement" not in printed(made(inside, inside), 120)
    assert [list_columns(one)["placement"] for one in table.rows] == [
        "flash/sram", "sdram/sram+sdram"]
    assert "sdram/sram+sdram" in str(describe_table(table))


def test_a_board_nothing_fits_on_says_so_once() -> None:
    selection = twin.select("mobilenet_v1_1.0_224", ["nucleo_f401re"], runtimes="default",
                            advise=False)
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(selection_report(selection, console))
    text = console.export_text()
    assert {line.count("does not fit") for line in text.splitlines() if "short in" in line} == {1}


def test_a_board_without_a_row_has_a_line() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(sweep_report(TABLE, console, 1))
    text = console.export_text()
    assert "not shown: nucleo_h7a3zi_q" in text and "not shown: stm32h747i_disco" in text
    assert "misses a limit" in text and "not shown: nucleo_u575zi_q" not in text


def test_several_networks_have_a_best_each() -> None:
    other = dataclasses.replace(row(4e5, 9e3), model="big")
    lines = summarise(made(row(9e4, 4e3), other, limits=TABLE.limits))
    assert lines[-2].startswith("cnn, best: ") and lines[-1].startswith("big, none meets; nearest")


def test_pictures_are_drawn_whatever_is_known(tmp_path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    from twin.reports.figures.studies import write_study_pictures

    assert [path.name for path in write_study_pictures(TABLE, f"{tmp_path}/")] == [
        "pareto.png", "parallel.png", "dashboard.png", "radar.png"]
    no_energy = made(row(1e3, None), row(2e3, None, "rpi_pico"))
    assert write_study_pictures(no_energy, tmp_path / "one.svg")[0].stat().st_size > 5000
    with pytest.raises(UsageError, match="nothing to draw"):
        write_study_pictures(made(row(1, 1, failure="runtime")), tmp_path / "none.png")


def test_a_heat_map_needs_two_axes(tmp_path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    from twin.reports.figures.studies import draw_heat_figure
    from twin.reports.study_charts import sort_values

    rows = [dataclasses.replace(row(1e3 * clock, 1.0, board), inputs=(
        ("board", board), ("clock", f"{clock}MHz"))) for board in "ab" for clock in (100, 20)]
    table = make_table(rows, limits=Limits(), objectives=("time_us",), axes=("board", "clock"))
    assert draw_heat_figure(table).axes
    wide = [dataclasses.replace(one, inputs=(*one.inputs, ("network.width", width)))
            for one in rows for width in ("0.5", "1")]
    varied = make_table(wide, limits=Limits(), objectives=("time_us",),
                        axes=("board", "clock", "network.width"))
    assert draw_heat_figure(varied).axes[0].get_ylabel() == "network.width"
    assert sort_values(["100MHz", "20MHz"]) == ["20MHz", "100MHz"]
    with pytest.raises(UsageError, match="two axes"):
        draw_heat_figure(TABLE)


def test_what_varies_has_a_column_though_the_rows_shown_are_alike() -> None:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(sweep_report(TABLE, console, shown=1))
    text = console.export_text()
    assert "2 more rows: --rows 0 shows all" in text
    assert any(line.startswith("** nucleo_u575zi_q") for line in text.splitlines())


def test_values_that_are_rounded_are_said_to_be():
    asked = [dataclasses.replace(row(9e4, 4e3), inputs=(("network.width", share),))
             for share in ("0.5", "0.55")]
    assert "multiples of eight" in printed(made(*asked), 200)
    assert "multiples of eight" not in printed(TABLE, 200)


@pytest.mark.parametrize(("grade", "said"), [
    ("measured here", ""), ("not measured here", ", not measured here"), ("guess", ", guess")])
def test_a_sentence_of_a_row_says_how_far_to_trust_its_figures(grade, said) -> None:
    text = describe_row(row(60e3, None, grade=grade))
    assert text == ("nucleo_h7a3zi_q, x-cube-ai@10.2.0, 280 MHz range1_boost: 60 ms" + said)
