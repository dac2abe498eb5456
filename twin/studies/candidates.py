"""Candidates: changes of a deployment worth trying, by class of effort."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hwmodels.quantities import read_quantity
from twin.deployment.deployment import Deployment
from twin.deployment.transformations import Transformation, list_transformations
from twin.network.rewrites.rewrite import EFFORTS
from twin.studies.axes import list_clocks

Candidate = tuple[Transformation, str]
"""A change, and what it is set to."""

Candidates = dict[str, list[Candidate]]
"""By class of effort."""


def sort_candidates(deployment: Deployment, efforts: Iterable[str] = EFFORTS,
                    ) -> Candidates:
    """Return changes worth trying with their value, by class of effort.

    Clocks are those `list_clocks` names.
    """
    found: Candidates = {effort: [] for effort in efforts}
    for one in list_transformations(deployment, found):
        values: Iterable[str] = one.values
        if one.path == f"clocks.{deployment.board.core_clock.name}.frequency_hz":
            values = list_clocks(deployment.board)
        elif one.path == "kernels.level" and deployment.runtime.is_compiled:
            values = ()
        found[one.effort].extend((one, str(value)) for value in values)
    return found


def keep_lowering(deployment: Deployment, candidates: Candidates,
                  quantities: Sequence[str]) -> Candidates:
    """Return the candidates that may lower any of some quantities, of whatever network."""
    return {effort: [(one, value) for one, value in found if any(
        may_lower(deployment, one.path, value, name) for name in quantities)]
        for effort, found in candidates.items()}


def may_lower(deployment: Deployment, path: str, value: str, quantity: str) -> bool:
    """Return whether a change may lower a quantity, of whatever network.

    Clocks and caches move no byte, a clock below the board's own saves no time, and parameters are
    the network's.
    """
    if quantity == "parameter_bytes":
        return path.startswith("network.")
    part, _, rest = path.partition(".")
    if part not in ("clocks", "caches") or quantity in ("energy_uj", "mean_mw"):
        return True
    read = None if part == "caches" else read_quantity(value, "hz")
    return quantity == "time_us" and (
        read is None or read[0] >= deployment.board.hertz[rest.partition(".")[0]])
