"""The truth board has each row of use fit that was learnt from, and none that is sealed."""

from __future__ import annotations

import json
import math
from pathlib import Path

from calibration.datasets import published_rows
from calibration.fitting.cell import list_measured
from hwmodels.board.file import load_board

ROOT = Path(__file__).parents[2]
ROWS = json.loads((ROOT / "benchmarks/accuracy/results/truth.json").read_text(encoding="utf-8"))


def test_every_row_of_use_fit_is_there_and_no_sealed_one() -> None:
    measured: dict[str, int] = {}
    for one in list_measured():
        measured[one.board] = measured.get(one.board, 0) + one.rows
    shown = {name: {row["row"] for row in ROWS if row["board"] == name} for name in measured}
    # The Apollo510's are layers, and one row of the NPU is of a precision nobody predicts.
    assert {name: len(labels) for name, labels in shown.items()} == {
        **measured, "apollo510_evb": 0, "stm32n6570_dk": measured["stm32n6570_dk"] - 1}
    assert len(ROWS) == len({(row["row"], row["quantity"]) for row in ROWS})
    labels = {use: {f"{row.dataset}:{row.line}" for row in published_rows(use=use)}
              for use in ("fit", "test")}
    assert {row["row"] for row in ROWS} <= labels["fit"] and not labels["fit"] & labels["test"]


def test_figures_are_those_published_with_their_intervals() -> None:
    published = {f"{row.dataset}:{row.line}": row for row in published_rows(use="fit")}
    for row in ROWS:
        source = published[row["row"]]
        stated = source.latency_ms * 1e3 if row["quantity"] == "time" else source.energy_uj
        assert math.isclose(row["published"], stated, rel_tol=1e-9)
        assert row["low"] < row["predicted"] < row["high"]
        assert (row["how"] == "fitted with it") == (row["board"] == "stm32n6570_dk")


def test_no_energy_is_learnt_from_at_assumed_currents() -> None:
    boards = {row["board"] for row in ROWS if row["quantity"] == "energy"}
    assert boards and not [name for name in boards if load_board(name).assumed_current_sd]
