"""`twin sweep`: every combination of models, boards and settings as one table."""

from __future__ import annotations

import twin
from twin.api.requests.studies import Sweep
from twin.cli.options import AsJson, command
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.progress import Rate
from twin.cli.studying import PlotTarget, RowCount, TableFile, check_places, show_table


@command
def sweep(asked: Sweep, rows: RowCount = 40, output: TableFile = None, plot: PlotTarget = None,
          page: PageFile = None, as_json: AsJson = False) -> None:
    """Predict every combination of models, boards and settings; mark the Pareto front."""
    check_places(output, plot)
    check_page(page)
    with Rate() as rate:
        table = twin.sweep(**asked.arguments, on_progress=rate.tell)
    write_result(table, page)
    show_table(table, output=output, plot=plot, as_json=as_json, rows=rows)
