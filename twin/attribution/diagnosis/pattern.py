"""The pattern a diagnosis weighs: measured amounts by layer, and counts of the whole network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.measurement.counters import ALIASES
from twin.attribution.pairing import pair_parts
from twin.attribution.side import Side
from twin.deployment.deployment import Deployment
from twin.errors import UsageError

PATTERN_SHARE = 0.99
"""The pattern rests on the layers that make up this share; the rest is overhead and noise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """What is compared.

    Parameters
    ----------
    quantity : str
        "cycles", "time" or "instructions".
    layers : tuple of int
        In the model file; None alone is the whole network.
    families : tuple of str
        Of each layer: kernels that are off together.
    measured : numpy.ndarray
        Shape (layers,).
    instructions, misses : float or None
        Of the whole network, where they were counted.
    left_out : str
        Which layers are not in it, and why; "" where all are.
    """

    quantity: str
    layers: tuple[int | None, ...]
    families: tuple[str, ...]
    measured: np.ndarray
    instructions: float | None
    misses: float | None
    left_out: str = ""

    @property
    def counted(self) -> tuple[str, ...]:
        """Counters besides cycles and time that it rests on."""
        return tuple(name for name, value in (("instructions", self.instructions),
                                              ("cache misses", self.misses)) if value is not None)


def has_counts(side: Side) -> bool:
    """Whether instructions or cache misses were counted beside cycles."""
    return any(_count(name, side) is not None for name in ("instructions", "misses"))


def make_pattern(ours: Side, theirs: Side, deployment: Deployment) -> Pattern:
    """Return the layers and counts both sides have.

    Raises
    ------
    UsageError
        When they have nothing in common above zero.
    """
    pairing = pair_parts(ours, theirs)
    for quantity in ("cycles", "time", "instructions"):
        if quantity not in theirs.whole.amounts or quantity not in ours.whole.amounts:
            continue
        found = {one.index: other.amounts[quantity] for one, other in pairing.same
                 if one and other and other.amounts.get(quantity, 0) > 0}
        predicted = {part.index: part.amounts[quantity] for part in ours.parts
                     if part.amounts[quantity] > 0}
        layers = _largest([index for index in predicted if index in found], predicted)
        measured = [float(found[index]) for index in layers]
        if not layers and theirs.whole.amounts[quantity] > 0:
            layers, measured = (None,), [float(theirs.whole.amounts[quantity])]
        if layers:
            return Pattern(
                quantity=quantity, layers=layers, measured=np.array(measured),
                families=tuple(_family(deployment, index) for index in layers),
                left_out=(pairing.note and f"({pairing.note})") or _tell_left_out(
                    {part.index: part.amounts[quantity] for part in ours.parts}, found, layers),
                instructions=_count("instructions", theirs),
                misses=_count("misses", theirs))
    raise UsageError(f"{theirs.label}: has {', '.join(theirs.whole.amounts)}; a diagnosis needs "
                     "cycles, time or instructions above zero")


def _largest(indices: Sequence[int | None],
             amounts: Mapping[int | None, int]) -> tuple[int | None, ...]:
    """Return the fewest parts that make up `PATTERN_SHARE`, in order."""
    whole, kept, so_far = sum(amounts[index] for index in indices), set(), 0
    for index in sorted(indices, key=lambda one: -amounts[one]):
        if so_far >= PATTERN_SHARE * whole:
            break
        kept.add(index)
        so_far += amounts[index]
    return tuple(index for index in indices if index in kept)


def _tell_left_out(ours: Mapping[int | None, int], found: Mapping[int | None, int],
                   layers: Sequence[int | None]) -> str:
    """Say which layers a pattern leaves out: of little, without cycles, and not measured."""
    if tuple(layers) == (None,):
        return ""
    left: dict[str, list[str]] = {}
    for index, amount in ours.items():
        if index in layers:
            continue
        why = ("predicted to take none" if amount <= 0 else "not measured" if index not in found
               else f"under {100 * (1 - PATTERN_SHARE):.0f} % together")
        left.setdefault(why, []).append("what is outside layers" if index is None else str(index))
    return "; ".join(f"without {', '.join(names)} ({why})" for why, names in left.items())


def _family(deployment: Deployment, index: int | None) -> str:
    if index is None:
        return ""
    layer = next(one for one in deployment.graph.layers if one.index == index)
    pointwise = layer.window is not None and tuple(layer.window.kernel) == (1, 1)
    return f"{layer.op} 1x1" if pointwise else layer.op


def _count(name: str, side: Side) -> float | None:
    return next((side.whole.counts[alias] for alias in ALIASES[name]
                 if alias in side.whole.counts), None)
