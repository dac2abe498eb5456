"""Rows of studies made by hand."""

from __future__ import annotations

from calibration.fitting.intervals import Interval
from twin.studies.limits import Limits
from twin.studies.results import Table
from twin.studies.rows import Row, judge
from twin.studies.sweep import mark_front


def make_row(board: str, *, time_us: float = 1e4, energy_uj: float | None = 500.0,
             ram_bytes: int = 20_000, **inputs: str) -> Row:
    """A predicted row with an interval of a tenth either way."""
    def around(value: float | None) -> Interval | None:
        return None if value is None else Interval(low=0.9 * value, high=1.1 * value, level=0.9)

    return Row(inputs=(("model", "made"), ("board", board), *inputs.items()), model="made",
               board=board, runtime="made@1.0", clock_hz=1e8, time_us=time_us,
               time=around(time_us), energy_uj=energy_uj, energy=around(energy_uj),
               basis="conformal", calibration="made", ram_bytes=ram_bytes, flash_bytes=50_000,
               ram_room_bytes=100_000, flash_room_bytes=500_000)


def make_table(*, limits: Limits | None = None,
               boards: tuple[str, str, str] = ("a", "b", "c")) -> Table:
    """Three rows that were predicted, and one that was refused."""
    rows = [make_row(boards[0], time_us=40e3, energy_uj=200.0),
            make_row(boards[1], time_us=20e3, energy_uj=900.0),
            make_row(boards[2], time_us=80e3, energy_uj=950.0)]
    judged = [judge(row, limits or Limits()) for row in rows]
    refused = Row(inputs=(("model", "made"), ("board", "d")), model="made", board="d",
                  failure="does not fit", reason="too small")
    return Table(rows=(*mark_front(judged, ("time_us", "energy_uj")), refused),
                 limits=limits or Limits(), axes=("board",))
