"""`twin report`: all that is known of a deployment on one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from twin.attribution import views
from twin.deployment.deployment import Deployment
from twin.errors import NotApplicableError, UsageError
from twin.learning.calibration import AUTO
from twin.prediction.locality import Locality, measure_locality
from twin.prediction.prediction import Prediction
from twin.reports.page.deployment import Report, describe_report
from twin.reports.page.page import render_page
from twin.studies.advice import try_changes
from twin.studies.change import Change, Explainer
from twin.studies.points import Deployer
from twin.studies.sweep import Told
from twin.verbs.check import check

EXPLAINED = 3
"""Changes whose gain gets an interval: the best."""


def report(deployment: Deployment, *, measured: str | PathLike[str] | None = None,
           published: bool = False, limits: Mapping[str, float | None] | None = None,
           changes: bool = True, anyway: bool = False, temperature: str = "warm",
           calibration: str | PathLike[str] = AUTO, command: str = "",
           on_progress: Told | None = None) -> str:
    """Write the page of a deployment: one HTML file that opens offline.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.
    measured : str or path, optional
        Folder of a measurement of it, to stand beside.
    published : bool
        Whether published rows of its network and board stand beside it, too.
    limits : mapping of str to float, optional
        It is held to: as `check` takes them, `max_ms`, `max_uj`, `max_ram_bytes` ...
    changes : bool
        Whether to try settings and rebuilds and say which helps most; takes a prediction each.
    anyway : bool
        Set it beside a measurement of something else, too.
    temperature, calibration
        As for `predict`.
    command : str
        What the page says it was made by.
    on_progress : callable, optional
        Told (changes tried, changes, refusals).

    Returns
    -------
    str
        HTML; the same deployment gives the same text.

    Raises
    ------
    ToolMissingError
        When the extra "page" is not installed.
    """
    chosen = fspath(calibration)
    held: dict[str, Any] = {name: one for name, one in (limits or {}).items() if one is not None}
    checked = check(deployment, temperature=temperature, calibration=chosen, **held)
    prediction = checked.prediction
    beside = None if measured is None else views.attribute_measured(
        prediction, fspath(measured), options={}, calibration=chosen, anyway=anyway)
    rows = views.compare_with_published(
        deployment.graph.name, deployment.board.name, calibration=chosen) if published else None
    return render_page(describe_report(Report(
        prediction=prediction, command=command, measured=beside, published=rows,
        requirements=checked.requirements if held else (),
        locality=find_locality(prediction),
        remarks=() if beside is None else beside.remarks,
        changes=rank_changes(deployment, Deployer(temperature=temperature, calibration=chosen),
                             on_progress) if changes else None)))


def find_locality(prediction: Prediction) -> Locality | None:
    """Return how accesses fare in the caches; None where there are none to look up."""
    if prediction.deployment.target.offloads:
        return None
    try:
        return measure_locality(prediction.deployment, cold=prediction.temperature == "cold")
    except (UsageError, NotApplicableError):
        return None


def rank_changes(deployment: Deployment, deployer: Deployer,
                 on_progress: Told | None = None) -> tuple[Change, ...]:
    """Return settings and rebuilds, each predicted, fastest first, those that cannot be last."""
    tried = try_changes(deployment, deployer, on_progress=on_progress)
    tried = [one for one in tried if one.time_ratio != 1 or one.energy_ratio != 1]
    tried.sort(key=lambda one: (one.row.failure != "", one.time_ratio or float("inf")))
    explained = Explainer(deployment=deployment, deployer=deployer, most=EXPLAINED).complete(
        [one for one in tried if not one.row.failure])
    return (*explained, *(replace(one, rests_on="") for one in tried if one.row.failure))
