"""`twin plan`: which micro-benchmarks most narrow a prediction's interval."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

import twin
from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    CalibrationChoice,
    ClockText,
    Model,
    RuntimeName,
    WeightsRole,
    check_outputs,
    deploy,
)
from twin.cli.output import note_written, open_console, show, show_json, warn
from twin.cli.progress import Steps

BoardOrFile = Annotated[str, typer.Option(
    "--board", "-b", "--to", metavar="BOARD|FILE", help="The board, or a file of `twin boards "
                                                        "new`.")]
PlanOutput = Annotated[str | None, typer.Option(
    "--output", "-o", metavar="FILE", help="Write the best two as a plan for `twin measure "
                                           "--plan`.")]


def plan(model: Model, board: BoardOrFile, runtime: RuntimeName = None, clock: ClockText = None,
         weights: WeightsRole = None, arena: ArenaRole = None,
         calibration: CalibrationChoice = AUTO, output: PlanOutput = None,
         as_json: AsJson = False) -> None:
    """Rank micro-benchmarks by how much they would narrow a prediction; name the best two."""
    check_outputs(output)
    from twin.reports.tables.portability import ranking_report
    from twin.verbs.plan import host_library, write_best

    placed = partial(deploy, model, board, clock=clock, weights=weights, arena=arena,
                     assume_unsupported=None, calibration=calibration)
    deployment = placed(runtime=runtime)
    if runtime is None and deployment.target.offloads:
        library = host_library(deployment)
        warn([f"runtime: {library} on the host core, which micro-benchmarks measure; without "
              f"--runtime {deployment.graph.name} runs under {deployment.runtime.identity}, on "
              "the accelerator"])
        deployment = placed(runtime=library)
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
