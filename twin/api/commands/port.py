"""`twin port` and `plan`: hardware nobody measured, and what to measure of it."""

from __future__ import annotations

from os import fspath
from pathlib import Path

from hwmodels.files import File
from twin.api.requests import takes
from twin.api.requests.prediction import Plan, Port
from twin.deployment.choice import portable_runtime
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.learning.portability.plan import rank_benchmarks
from twin.learning.portability.port import gather, predict_unmeasured
from twin.pricing.calibrated import apply_calibration
from twin.pricing.calibration import choose_calibration
from twin.pricing.inference import predict
from twin.pricing.unmeasured import Ported, Ranking


@takes(Port)
def port(asked: Port) -> Ported:
    """Predict for a board nobody measured, from what others were measured to take.

    With boards by name it is what `predict` says, every published row behind it, and what it rests
    on. Measurement folders, and a choice of networks, are learnt from alone.

    Raises
    ------
    UsageError
        On an accelerator, and as `gather`.
    """
    deployment, networks = asked.deployment, asked.networks
    _need_core(deployment, "no other board tells what an accelerator takes; `twin predict` and "
                           "`twin select` say what is known of it")
    names = [fspath(one) for one in asked.sources]
    observations = gather(names, networks, [deployment.board])
    alone = networks or any(Path(name).is_dir() for name in names)
    return predict_unmeasured(predict(deployment), observations,
                              None if alone else choose_calibration(deployment))


@takes(Plan)
def plan(asked: Plan) -> Ranking:
    """Rank micro-benchmarks by how much they narrow a prediction.

    Best first; `write_best` makes a plan of it for `measure`.

    Raises
    ------
    UsageError
        Without learnt prices, and on an accelerator: micro-benchmarks run on the core.
    """
    deployment = asked.deployment
    _need_core(deployment, "micro-benchmarks measure the host core")
    chosen = choose_calibration(deployment, fspath(asked.calibration))
    if chosen is None:
        raise UsageError(f"no learnt prices for {deployment.runtime.identity} on "
                         f"{deployment.board.name}, so no interval to narrow; accepted: "
                         "--calibration FILE, or a runtime that was measured somewhere")
    return rank_benchmarks(predict(apply_calibration(deployment, chosen)), chosen, deployment.board)


def _need_core(deployment: Deployment, why: str) -> None:
    """Refuse what runs on an accelerator, naming a library of its core."""
    if deployment.accelerated:
        raise UsageError(f"{deployment.runtime.identity} runs on the accelerator, and {why}; "
                         "accepted: a library of the host, such as --runtime "
                         + host_library(deployment))


def host_library(deployment: Deployment) -> str:
    """Return the library whose prices micro-benchmarks of an accelerator's host tell of."""
    return portable_runtime(deployment.board).identity


def write_best(ranking: Ranking, path: File) -> Path:
    """Write the best two micro-benchmarks as a plan file; returns where."""
    from twin.learning.portability.probes import PlanFile, write_plan
    from twin.reports.tables.portability import interval_text

    deployment, best = ranking.prediction.deployment, ranking.best
    return write_plan(Path(path), PlanFile(
        board=deployment.board.name, benchmarks=best.names, runtime=deployment.runtime.identity,
        model=deployment.graph.name,
        expected=f"from {interval_text(ranking.certainty.time_us)} to "
                 f"{interval_text(best.time_us)}"))
