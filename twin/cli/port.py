"""`twin port`: a prediction for hardware nobody measured, from boards somebody did."""

from __future__ import annotations

from typing import Annotated

import typer

import twin
from twin.cli.options import ArenaRole, AsJson, ClockText, Model, RuntimeName, WeightsRole, deploy
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.paging import PageFile, check_page, write_result
from twin.cli.plan import PlanOutput
from twin.cli.progress import Steps
from twin.errors import UsageError

From = Annotated[list[str], typer.Option(
    "--from", metavar="BOARD|DIR", help="What to learn from: a measured board, or a measurement "
                                        "folder; may be given several times.")]
To = Annotated[str, typer.Option(
    "--to", "-b", "--board", metavar="BOARD|FILE", help="The board to predict for; `twin boards "
                                                        "new` writes a file.")]
Networks = Annotated[str | None, typer.Option(
    "--networks", metavar="NAMES", help="Learn from these networks only, by comma.")]
Cache = Annotated[str | None, typer.Option(
    "--cache", metavar="DIR", help="Keep counts here, by content, for the next time.")]


def port(model: Model, source: From, to: To, runtime: RuntimeName = None, clock: ClockText = None,
         weights: WeightsRole = None, arena: ArenaRole = None, networks: Networks = None,
         cache: Cache = None, output: PlanOutput = None, page: PageFile = None,
         as_json: AsJson = False) -> None:
    """Predict for a board nobody measured: physics first, what other boards taught second."""
    from twin.reports.tables.portability import ported_report
    from twin.verbs.plan import write_best

    check_page(page)
    deployment = deploy(model, to, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=None)
    names = [] if networks is None else [name.strip() for name in networks.split(",")]
    with Steps("learnt from") as steps:
        steps.tell(0, 1, ", ".join(source))
        ported = twin.port(deployment, source, networks=names, cache=cache)
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
