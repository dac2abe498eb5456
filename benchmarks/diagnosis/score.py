"""What diagnoses of planted faults found: hits, false alarms, and whether probabilities hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hwmodels.frozen import frozen
from hwmodels.quantities import sum_by_key
from twin.attribution.diagnosis.faults import DECLARED
from twin.attribution.diagnosis.finding import Diagnosis

EDGES = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0)
"""Of the bins of stated probability."""


@frozen
class Outcome:
    """One diagnosis.

    Parameters
    ----------
    seed : int
        Of the hidden board.
    bench, plant : str
        Network and board; what was planted.
    group : str
        "core", the plants there always were, "wider", or "healthy".
    planted, effective : str
        Kind that was planted, and "as declared" where it moved nothing.
    mode : str
        How it was diagnosed.
    kinds : mapping of str to float
        Probabilities by answer, most probable first.
    likeliest : str
        The most probable kind, each by itself.
    together : tuple of str
        Kinds the verdict stands for: more than one where it distinguishes none of them.
    """

    seed: int
    bench: str
    plant: str
    group: str
    planted: str
    effective: str
    mode: str
    kinds: Mapping[str, float]
    likeliest: str
    together: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The most probable answer."""
        return next(iter(self.kinds))

    @property
    def found(self) -> bool:
        """Whether the likeliest kind is what was planted, or nothing where that moved nothing."""
        return self._is_right(self.likeliest)

    @property
    def answered(self) -> bool:
        """Whether what was planted is among the kinds the verdict stands for."""
        return any(map(self._is_right, self.together))

    def _is_right(self, kind: str) -> bool:
        return sorted(kind.split(" and ")) == sorted(
            self.planted.split(" and ")) or kind == self.effective

    @property
    def half(self) -> bool:
        """Of two faults, whether one was named."""
        return bool(set(self.verdict.split(" and ")) & set(self.planted.split(" and ")))


def note_outcome(diagnosis: Diagnosis, **facts: Any) -> Outcome:
    """Return the outcome of a diagnosis of what is said beside it."""
    single = sum_by_key((one.fault.kind, one.probability) for one in diagnosis.findings)
    return Outcome(kinds=diagnosis.kinds, likeliest=max(single, key=single.__getitem__),
                   together=tuple(one.fault.kind for one in diagnosis.members), **facts)


def describe_outcomes(outcomes: Sequence[Outcome]) -> str:
    """Return the score of each way, its false alarms, reliability, and each miss."""
    lines: list[str] = []
    ways = list(dict.fromkeys(one.mode for one in outcomes))
    lines += ["way | plants found | wider found | of two, one named | false alarms | none of these "
              "| Brier | right | right by group", " | ".join(["---"] * 9)]
    for way in ways:
        own = [one for one in outcomes if one.mode == way]
        lines.append(f"{way} | {_score(own)}")
    for way in ways:
        own = [one for one in outcomes if one.mode == way]
        lines += ["", f"{way}: stated probability of the verdict, and how often it "
                      "was right, by group", *_reliability(own)]
        lines += ["", f"{way}: missed, by plant and verdict", *_misses(own)]
    return "\n".join(lines)


def _score(outcomes: Sequence[Outcome]) -> str:
    core = [one for one in outcomes if one.group == "core"]
    wider = [one for one in outcomes if one.group == "wider"]
    pairs = [one for one in wider if " and " in one.planted]
    fine = [one for one in outcomes if one.planted == DECLARED]
    alarms = [one for one in fine if one.verdict not in (DECLARED, "none of these")]
    unknown = [one for one in fine if one.verdict == "none of these"]
    return (f"{_share(one.found for one in core)} | {_share(one.found for one in wider)} | "
            f"{_share(one.half for one in pairs)} | {_share(one in alarms for one in fine)} | "
            f"{_share(one in unknown for one in fine)} | {_brier(outcomes):.3f} | "
            f"{_share(one.found for one in outcomes)} | "
            f"{_share(one.answered for one in outcomes)}")


def _share(hits: Iterable[bool]) -> str:
    told = list(hits)
    return f"{sum(told)} of {len(told)} ({sum(told) / max(len(told), 1):.1%})"


def _brier(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([(next(iter(one.kinds.values())) - one.answered) ** 2
                          for one in outcomes]))


def _reliability(outcomes: Sequence[Outcome]) -> list[str]:
    stated = np.array([next(iter(one.kinds.values())) for one in outcomes])
    right = np.array([one.answered for one in outcomes])
    lines = ["stated | diagnoses | mean stated | right", "--- | --- | --- | ---"]
    for low, high in pairwise(EDGES):
        inside = (stated > low) & (stated <= high)
        if inside.any():
            lines.append(f"{low:.2f} to {high:.2f} | {inside.sum()} | {stated[inside].mean():.3f} "
                         f"| {right[inside].mean():.3f}")
    return lines


def _misses(outcomes: Sequence[Outcome]) -> list[str]:
    counts = Counter((one.bench, one.plant.split("-")[0] if one.group == "healthy" else one.plant,
                      one.verdict) for one in outcomes if not one.answered)
    return [f"{count:3} {bench:38} {plant:26} {verdict}"
            for (bench, plant, verdict), count in sorted(counts.items())] or ["none"]
