"""What studies find, whole: every column of every row, scores, changes, guidelines."""

from pathlib import Path

from made_outlines import compare_kept, outline
from made_studies import make_table

import twin
from twin.studies.limits import Limits
from twin.studies.penalties import list_penalties
from twin.studies.results import list_columns, list_settings

KEPT = Path(__file__).parent / "kept"


def rows_of(table):
    return {"settings": list_settings(table), "rows": [list_columns(row) for row in table.rows]}


def test_made_rows() -> None:
    limits = Limits(max_time_us=60e3, max_energy_uj=920.0, max_ram_bytes=90_000)
    table = make_table(limits=limits)
    compare_kept(KEPT / "made.txt", outline([rows_of(table), [
        list_penalties(row, limits) for row in table.rows]]))


def test_sweep() -> None:
    table = twin.sweep(["ad"], ["nucleo_l4r5zi", "rpi_pico"], clocks=["80MHz", "120MHz"],
                       settings={"placement.weights": ["sram", "flash"]}, max_ms=8, max_uj=300)
    compare_kept(KEPT / "sweep.txt", outline(rows_of(table), 60))


def test_selection() -> None:
    chosen = twin.select(["ad"], ["nucleo_l4r5zi", "rpi_pico", "stm32n6570_dk"], max_ms=5,
                         advise=False)
    compare_kept(KEPT / "select.txt", outline({
        "choices": [(one.row.board, one.score, one.penalties, one.others, one.reason)
                    for one in chosen.choices],
        "winners": [(one.metric, one.row.board, one.probability)
                    for one in chosen.list_winners("ad")], "table": rows_of(chosen.table)}, 60))


def test_advice() -> None:
    found = twin.advise(twin.deploy("ad", "nucleo_l4r5zi", runtime="cmsis-nn"), max_ms=4)
    compare_kept(KEPT / "advice.txt", outline([found.refused, found.before, *(
        (one.settings, one.effort, one.costs, one.time_ratio, one.energy_ratio,
         one.time_ratio_interval,
         one.rests_on, one.lost, list_columns(one.row))
        for one in (*found.changes[:6], *found.pairs[:2]))], 60))
