"""`twin plan`: which micro-benchmarks most narrow a prediction's interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import twin
from twin.api.requests import AUTO, Calibration, Deployed, Model, Option, Placed
from twin.cli.options import AsJson, check_outputs, command, deploy
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.progress import Steps

BoardOrFile = Annotated[str, Option(
    "--board -b --to", "BOARD|FILE", "The board, or a file of `twin boards new`.")]
PlanOutput = Annotated[str | None, Option(
    "--output -o", "FILE", "Write the best two as a plan for `twin measure --plan`.")]


@command
def plan(model: Model, board: BoardOrFile, placed: Placed, calibration: Calibration = AUTO,
         output: PlanOutput = None, as_json: AsJson = False) -> None:
    """Rank micro-benchmarks by how much they would narrow a prediction; name the best two."""
    check_outputs(output)
    from twin.api.commands.plan import host_library, write_best
    from twin.reports.tables.portability import ranking_report

    asked = Deployed(**placed.arguments)
    deployment = deploy(model, board, asked, calibration)
    if asked.runtime is None and deployment.target.offloads:
        library = host_library(deployment)
        warn([f"runtime: {library} on the host core, which micro-benchmarks measure; without "
              f"--runtime {deployment.graph.name} runs under {deployment.runtime.identity}, on "
              "the accelerator"])
        deployment = deploy(model, board, replace(asked, runtime=library), calibration)
    with Steps("ranked") as steps:
        steps.tell(0, 1, f"micro-benchmarks of {deployment.board.name}, and whole networks")
        ranking = twin.plan(deployment, calibration=calibration)
    if as_json:
        show_json(ranking)
    else:
        show(open_console(), ranking_report(ranking))
    warn(f"extrapolating: {reason}" for reason in ranking.certainty.extrapolating)
    if output is not None:
        note_written(write_best(ranking, output))
