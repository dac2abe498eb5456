"""`twin plan`: which micro-benchmarks most narrow a prediction's interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.options import (
    AUTO,
    ArenaRole,
    AsJson,
    CalibrationChoice,
    ClockText,
    Model,
    RuntimeName,
    WeightsRole,
    deploy,
)
from twin.cli.output import note_written, open_console, show, warn
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin.learning.portability.plan import Ranking

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
    from twin.learning.calibrated import apply_calibration, choose_calibration
    from twin.learning.portability.plan import rank_benchmarks
    from twin.prediction.prediction import predict
    from twin.reports.tables.portability import ranking_report

    deployment = deploy(model, board, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=None)
    chosen = choose_calibration(deployment, calibration)
    if chosen is None:
        raise UsageError(f"no learnt prices for {deployment.runtime.identity} on "
                         f"{deployment.board.name}, so no interval to narrow; accepted: "
                         "--calibration FILE, or a runtime that was measured somewhere")
    prediction = predict(apply_calibration(deployment, chosen))
    ranking = rank_benchmarks(prediction, chosen, deployment.board)
    if as_json:
        import json

        typer.echo(json.dumps(ranking_document(ranking), indent=2))
    else:
        show(open_console(), ranking_report(ranking))
    warn(f"extrapolating: {reason}" for reason in ranking.certainty.extrapolating)
    if output is not None:
        write_best(ranking, output)


def write_best(ranking: Ranking, path: str) -> None:
    """Write the best two micro-benchmarks as a plan file."""
    from twin.learning.portability.plan_file import PlanFile, write_plan
    from twin.reports.tables.portability import interval_text

    deployment, best = ranking.prediction.deployment, ranking.best
    note_written(write_plan(path, PlanFile(
        board=deployment.board.name, benchmarks=best.names, runtime=deployment.runtime.identity,
        model=deployment.graph.name,
        expected=f"from {interval_text(ranking.certainty.time_us)} to "
                 f"{interval_text(best.time_us)}")))


def ranking_document(ranking: Ranking) -> dict[str, object]:
    """Return a ranking as JSON has it."""
    def one(names: tuple[str, ...], low: float, high: float, narrowing: float,
            ) -> dict[str, object]:
        return {"run": list(names), "low_us": low, "high_us": high, "narrowing": narrowing}

    before = ranking.certainty.time_us
    return {
        "kind": "predicted", "time_us": ranking.prediction.time_us, "low_us": before.low,
        "high_us": before.high, "level": before.level,
        "best": one(ranking.best.names, ranking.best.time_us.low, ranking.best.time_us.high,
                    ranking.best.narrowing),
        "candidates": [one(c.names, c.time_us.low, c.time_us.high, c.narrowing)
                       for c in (*ranking.single, *ranking.runs)],
        "silent": list(ranking.silent)}
