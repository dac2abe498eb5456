"""`twin advise`: the cheapest change that makes a deployment meet limits."""

from __future__ import annotations

import typer

import twin
from twin.api.requests import BoardName, Deployed, Model
from twin.api.requests.advice import Advise
from twin.cli.options import AsJson, command, deploy
from twin.cli.output import open_console, show, show_json, warn
from twin.cli.progress import Rate


@command
def advise(model: Model, board: BoardName, asked: Advise, placed: Deployed,
           as_json: AsJson = False) -> None:
    """Find the cheapest change that meets limits; exit 1 where none does."""
    deployment = deploy(model, board, placed, asked.calibration)
    with Rate() as rate:
        advice = twin.advise(deployment, **asked.arguments, on_progress=rate.tell)
    if as_json:
        show_json(advice)
    else:
        from twin.reports.tables.advice import advice_report

        show(open_console(), advice_report(advice))
    warn(deployment.chosen)
    if not advice.met and advice.best is None:
        raise typer.Exit(1)
