"""Remedies of a bottleneck: the settings and rebuilds that may help against it, each predicted."""

from __future__ import annotations

from hwmodels.quantities import list_by_key
from twin.deployment.deployment import Deployment
from twin.network.rewrites.rewrite import EFFORTS
from twin.studies.candidates import sort_candidates
from twin.studies.change import Change
from twin.studies.limits import Limits
from twin.studies.points import Deployer
from twin.studies.search import Search
from twin.studies.sweep import Progress

REMEDIES = {
    "cache": ("placement.weights", "placement.arena", "caches."),
    "bandwidth": ("placement.weights", "placement.arena", "npu."),
    "stalled": ("placement.weights", "placement.arena", "npu."),
    "waits": ("placement.weights", "placement.arena"), "launch": ("npu.",),
    "compute": ("clocks.", "runtime", "kernels."), "overhead": ("runtime", "kernels.", "npu.")}
"""What is tried against each kind of bottleneck, by the beginnings of paths."""

MOST_VALUES, NOTABLE = 4, 0.98
"""Values of one path a suggestion tries; after over before from which it is worth saying."""


def suggest_change(deployment: Deployment, bottleneck: str) -> Change | None:
    """Return the setting or rebuild that saves most time against a bottleneck; None: none helps.

    Parameters
    ----------
    bottleneck
        Kind, a key of `REMEDIES`: which changes are tried; any other: all of them.
    """
    tried = try_changes(deployment, Deployer(), bottleneck)
    return min((one for one in tried if one.time_ratio is not None and one.time_ratio < NOTABLE),
               key=lambda one: one.time_ratio or 1.0, default=None)


def try_changes(deployment: Deployment, deployer: Deployer, bottleneck: str = "",
                on_progress: Progress | None = None) -> list[Change]:
    """Return changes of a bottleneck's remedies, each predicted, those that cannot be too.

    Parameters
    ----------
    deployer
        Prices and temperature.
    bottleneck
        Key of `REMEDIES`; any other: the changes of all of them.
    on_progress
        Called with (changes tried, changes, refusals).
    """
    paths = REMEDIES.get(bottleneck, tuple({path for paths in REMEDIES.values() for path in paths}))
    wanted = list_by_key(
        (one.path, (one, value)) for candidates in sort_candidates(deployment, EFFORTS[:2]).values()
        for one, value in candidates if one.path.startswith(paths))
    before, = deployer.predict_changed(deployment, [{}])
    chosen = [item for values in wanted.values() for item in values[:MOST_VALUES]]
    return [*Search(deployment, deployer, before, Limits(), total=len(chosen),
                    on_progress=on_progress).try_each(chosen)]
