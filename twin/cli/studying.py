"""What commands of many deployments share: their options, and how their table is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import twin
from twin.api.commands.predict import check_set_once, describe_fastest
from twin.api.requests import Deployed, Option, Priced
from twin.api.requests.values import Frequency
from twin.cli.options import Json, Output, Target, check_outputs, present
from twin.cli.progress import Rate
from twin.errors import StudyError

if TYPE_CHECKING:
    from twin import Table

RowCount = Annotated[int, Option("--rows", "N", "Most rows shown; 0: all.", least=0)]
SWEPT = "studies:sweep_report"

PARETO = Option(
    "--plot", "FILE", "Write the Pareto picture (.png, .svg, .pdf); into a folder (DIR/): parallel "
    "coordinates and heat maps too.")


class Rows(Output):
    """How much of a table is shown."""

    shown: RowCount = 40


class Tabled(Target):
    """A table of configurations as a file."""

    output: Annotated[str | None, Option(
        "-o --output", "FILE", "Write every row and column: .parquet or .csv.")] = None

    def check_target(self, target: str) -> None:
        """Refuse a file that could not be written."""
        from twin.api.commands.sweep import check_output

        check_output(target)
        check_outputs(target)

    def write_target(self, found: Any, target: str) -> list[Path]:
        """Write the table a result is, or has."""
        return [getattr(found, "table", found).write(target)]


class Pareto(Target):
    """A table of configurations as pictures."""

    plot: Annotated[str | None, PARETO] = None

    def check_target(self, target: str) -> None:
        """Refuse pictures that could not be written."""
        from twin.reports.figures.overview import check_target

        check_target(target)

    def write_target(self, found: Any, target: str) -> Iterable[Path]:
        """Draw the table a result is, or has."""
        from twin.reports.figures.studies import write_study_pictures

        written: Iterable[Path] = write_study_pictures(getattr(found, "table", found), target)
        return written


def refuse_failed(table: Table) -> bool:
    """Refuse a table of failures alone; why each failed is in what was printed of it."""
    if not table.predicted:
        kinds = ", ".join(dict.fromkeys(row.failure for row in table.failed))
        raise StudyError(f"none of {len(table.rows)} configurations was predicted: "
                         f"{kinds or 'there is none'}, as listed")
    return False


def show_several(models: Sequence[str], boards: Sequence[str], placed: Deployed, priced: Priced,
                 *, plot: str | None = None, as_json: bool,
                 limits: Mapping[str, Any] | None = None, view: str = SWEPT) -> Table:
    """Predict several models or boards with the options of one, and print a row for each."""
    for board in boards:
        check_set_once(board, placed)
    settings = {path: [value] for path, value in (placed.changes or {}).items()}
    for role, name in (("weights", placed.weights), ("arena", placed.arena)):
        if name is not None:
            settings[f"placement.{role}"] = [name]
    clock = (placed.clock_hz.text,) if isinstance(placed.clock_hz, Frequency) else ()
    outputs: Iterable[Output] = (Pareto(plot=plot), Json(as_json=as_json), Rows(shown=0))
    for output in outputs:
        output.check()
    with Rate() as rate:
        table = twin.sweep(models, boards, settings=settings, runtimes=placed.runtime or (),
                           clocks=clock, assume_unsupported=placed.assume_unsupported,
                           on_progress=rate.tell, **priced.arguments, **(limits or {}))
    present(table, [*outputs], view=view, ends=refuse_failed, warnings=describe_fastest)
    return table
