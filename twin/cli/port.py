"""`twin port`: a prediction for hardware nobody measured, from boards somebody did."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.options import ArenaRole, AsJson, ClockText, Model, RuntimeName, WeightsRole, deploy
from twin.cli.output import open_console, show, warn
from twin.cli.plan import PlanOutput, ranking_document, write_best
from twin.errors import UsageError

if TYPE_CHECKING:
    from twin.learning.portability.port import Ported

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
         cache: Cache = None, output: PlanOutput = None, as_json: AsJson = False) -> None:
    """Predict for a board nobody measured: physics first, what other boards taught second."""
    from twin.learning.portability import port as portability
    from twin.reports.tables.portability import ported_report

    deployment = deploy(model, to, runtime=runtime, clock=clock, weights=weights, arena=arena,
                        assume_unsupported=None)
    names = [] if networks is None else [name.strip() for name in networks.split(",")]
    observations = portability.gather(source, names, cache=None if cache is None else Path(cache))
    ported = portability.predict_unmeasured(deployment, observations)
    if as_json:
        import json

        typer.echo(json.dumps(ported_document(ported), indent=2))
    else:
        show(open_console(), ported_report(ported))
    warn(ported.prediction.warnings)
    if output is not None:
        if ported.ranking is None:
            raise UsageError("--output: no micro-benchmark tells of a price this network has")
        write_best(ported.ranking, output)


def ported_document(ported: Ported) -> dict[str, object]:
    """Return a ported prediction as JSON has it."""
    prediction, certainty = ported.prediction, ported.prediction.certainty
    assert certainty is not None
    shipped = ported.shipped
    return {
        "kind": "predicted", "model": prediction.deployment.graph.name,
        "board": prediction.deployment.board.name,
        "runtime": prediction.deployment.runtime.identity, "physics_us": ported.physics_us,
        "time_us": prediction.time_us, "time_interval_us": asdict(certainty.time_us),
        "energy_uj": prediction.energy_uj,
        "energy_interval_uj": None if certainty.energy_uj is None else asdict(certainty.energy_uj),
        "shipped": {"time_us": shipped.time_us, "why_it_differs": ported.difference,
                    "time_interval_us": None if shipped.certainty is None else asdict(
                        shipped.certainty.time_us)},
        "basis": certainty.basis, "makeup": asdict(ported.makeup),
        "extrapolating": list(certainty.extrapolating),
        "behind": [asdict(one) for one in ported.behind],
        "narrowing": None if ported.ranking is None else ranking_document(ported.ranking)}
