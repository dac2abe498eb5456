"""Deployments beside each other: several boards and libraries, or stages of optimisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwmodels.errors import TwinError
from hwmodels.quantities import Settings
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.reports.page.variants import Made, Variant
from twin.studies.limits import Limits
from twin.studies.points import Deployer, name_failure
from twin.studies.remedies import NOTABLE, try_changes
from twin.studies.rows import Row, judge
from twin.studies.sweep import Progress

Variants = Mapping[str, Deployment | TwinError]
"""A deployment, or why it cannot be, by what it is called."""

START = "as it is"
MOST_STAGES = 20


def chain_stages(deployment: Deployment,
                 stages: Sequence[Settings]) -> dict[str, Deployment | TwinError]:
    """Return a deployment and what each stage makes of the one before it.

    Parameters
    ----------
    stages : sequence of mapping
        What-if paths and values of each stage; one that is refused is omitted from those after it.
    """
    found: dict[str, Deployment | TwinError] = {START: deployment}
    for stage in stages:
        label = "+ " + ", ".join(f"{path}={value}" for path, value in stage.items())
        if label in found:
            raise UsageError(f"--stage {label}: is given twice")
        try:
            deployment = deployment.replace(stage)
            found[label] = deployment
        except TwinError as error:
            found[label] = error
    return found


def find_stages(deployment: Deployment, most: int, temperature: str, calibration: str,
                on_progress: Progress | None = None) -> tuple[dict[str, object], ...]:
    """Return the stages that save most time, each the best setting or rebuild of what is before it.

    Parameters
    ----------
    most : int
        Stages; fewer where nothing saves two per cent any more.
    temperature, calibration : str
        As for `predict`.
    on_progress : callable, optional
        Called with (changes tried in a stage, changes, refusals).
    """
    if not 1 <= most <= MOST_STAGES:
        raise UsageError(f"--stages {most}: accepted: 1 to {MOST_STAGES}")
    deployer = Deployer(temperature=temperature, calibration=calibration)
    found: list[dict[str, object]] = []
    done: set[str] = set()
    while len(found) < most:
        tried = [one for one in try_changes(deployment, deployer, on_progress=on_progress)
                 if one.time_ratio is not None and one.time_ratio < NOTABLE
                 and not {path for path, _ in one.settings} & done]
        if not tried:
            break
        best = min(tried, key=lambda one: one.time_ratio or 1.0)
        found.append(dict(best.settings))
        done |= set(found[-1])
        deployment = deployment.replace(found[-1])
    return tuple(found)


def predict_variants(variants: Variants, deployer: Deployer, limits: Limits | None = None,
                     on_progress: Progress | None = None) -> tuple[Variant, ...]:
    """Predict deployments, each held to the limits; those that cannot be keep their reason."""
    made = []
    for place, (label, one) in enumerate(variants.items(), 1):
        made.append(_predict(label, one, deployer, limits or Limits()))
        if on_progress is not None:
            on_progress(place, len(variants), sum(bool(each.row.failure) for each in made))
    return tuple(made)


def _predict(label: str, one: Deployment | TwinError, deployer: Deployer,
             limits: Limits) -> Variant:
    error = one if isinstance(one, TwinError) else None
    if isinstance(one, Deployment):
        try:
            row, = deployer.predict_changed(one, [{}])
            if row.failure:
                return Variant(label=label, row=row)
            return Made(label=label, row=judge(row, limits), prediction=deployer.predict_one(one))
        except TwinError as refusal:
            error = refusal
    return Variant(label=label, row=Row(inputs=(), board=label.split(" · ")[0],
                                        failure=name_failure(error), reason=str(error)))
