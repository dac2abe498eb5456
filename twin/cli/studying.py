"""What verbs of many deployments share: their options, and how their table is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import twin
from twin.api.requests import Deployed, Frequency, LimitedAndPriced, Option, Priced
from twin.cli.options import check_outputs
from twin.cli.output import note_written, open_console, show, show_json
from twin.cli.progress import Rate
from twin.errors import StudyError

if TYPE_CHECKING:
    from twin import Table

TableFile = Annotated[str | None, Option(
    "-o --output", "FILE", "Write every row and column: .parquet or .csv.")]
PlotTarget = Annotated[str | None, Option(
    "--plot", "FILE", "Write the Pareto picture (.png, .svg, .pdf); into a folder (DIR/): parallel "
    "coordinates and heat maps too.")]
RowCount = Annotated[int, Option("--rows", "N", "Most rows shown; 0: all.", least=0)]


def check_places(output: str | None, plot: str | None) -> None:
    """Refuse files that could not be written, before anything is computed."""
    if output is not None:
        from twin.api.commands.sweep import check_output

        check_output(output)
    check_outputs(output)
    if plot is not None:
        from twin.reports.figures.sheet import check_target, is_folder

        check_target(plot)
        check_outputs(*([] if is_folder(plot) else [plot]),
                      folder=plot if is_folder(plot) else None)


def show_table(table: Table, *, output: str | None = None, plot: str | None = None,
               as_json: bool = False, rows: int = 40) -> None:
    """Print a table of a study and write it where it is wanted; refuses one of failures alone."""
    if as_json:
        show_json(table)
    else:
        from twin.reports.tables.studies import sweep_report

        console = open_console()
        show(console, sweep_report(table, console, rows))
    for path in write_places(table, output, plot):
        note_written(path)
    if not table.predicted:
        raise StudyError(f"none of {len(table.rows)} configurations was predicted"
                         + (f": {table.failed[0].failure}" if table.failed else ""))


def write_places(table: Table, output: str | None, plot: str | None) -> Iterator[Path]:
    """Write a table and its pictures where they are wanted, and yield the files."""
    if output is not None:
        yield table.write(output)
    if plot is not None:
        from twin.reports.figures.studies import write_study_pictures

        yield from write_study_pictures(table, plot)


def predict_several(models: Sequence[str], boards: Sequence[str], placed: Deployed,
                    priced: Priced, limits: LimitedAndPriced | None = None) -> Table:
    """Predict several models or boards with the options of one."""
    settings = {path: [value] for path, value in (placed.changes or {}).items()}
    for role, name in (("weights", placed.weights), ("arena", placed.arena)):
        if name is not None:
            settings[f"placement.{role}"] = [name]
    clock = (placed.clock_hz.text,) if isinstance(placed.clock_hz, Frequency) else ()
    with Rate() as rate:
        return twin.sweep(models, boards, settings=settings, runtimes=placed.runtime or (),
                          clocks=clock, assume_unsupported=placed.assume_unsupported,
                          on_progress=rate.tell, **priced.arguments,
                          **({} if limits is None else limits.arguments))


def show_several(models: Sequence[str], boards: Sequence[str], placed: Deployed, priced: Priced,
                 *, plot: str | None, as_json: bool,
                 limits: LimitedAndPriced | None = None) -> Table:
    """Predict several models or boards and print a row for each."""
    check_places(None, plot)
    table = predict_several(models, boards, placed, priced, limits)
    show_table(table, plot=plot, as_json=as_json, rows=0)
    return table
