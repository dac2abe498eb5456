"""`twin port`: a prediction for hardware nobody measured, from boards somebody did."""

from __future__ import annotations

from typing import Annotated

import twin
from twin.api.requests import Deployed, Model, Option, Placed, prediction
from twin.cli.options import AsJson, command, deploy
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.plan import PlanOutput
from twin.cli.progress import Steps
from twin.errors import UsageError

To = Annotated[str, Option(
    "--to -b --board", "BOARD|FILE", "The board to predict for; `twin boards new` writes a file.")]


@command
def port(model: Model, asked: prediction.Port, to: To, placed: Placed, output: PlanOutput = None,
         page: PageFile = None, as_json: AsJson = False) -> None:
    """Predict for a board nobody measured: physics first, what other boards taught second."""
    from twin.api.commands.plan import write_best
    from twin.reports.tables.portability import ported_report

    check_page(page)
    deployment = deploy(model, to, Deployed(**placed.arguments))
    with Steps("learnt from") as steps:
        steps.tell(0, 1, ", ".join(map(str, asked.sources)))
        ported = twin.port(deployment, **asked.arguments)
    if as_json:
        show_json(ported)
    else:
        show(open_console(), ported_report(ported))
    warn(ported.prediction.warnings)
    write_result(ported, page)
    if output is not None:
        if ported.ranking is None:
            raise UsageError("--output: no micro-benchmark tells of a price this network has")
        note_written(write_best(ported.ranking, output))
