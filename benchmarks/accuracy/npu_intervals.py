"""Intervals of an accelerator's predictions, judged by leaving families of networks out:
`python -m benchmarks.accuracy.npu_intervals`.

The deviation of a whole network (`offload.spread.network` of the runtime's file) is learnt from the
published networks of other families; what the other parts deviate by is the file's. Rows of use fit
only, at the version the file's numbers are of.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from benchmarks.accuracy.coverage import coverage_band
from benchmarks.accuracy.npu_networks import VERSION, family_of, predict_judged
from benchmarks.accuracy.npu_speech import list_speech_cases
from calibration.fitting.intervals import student_band
from hwmodels.frozen import frozen
from twin.pricing.accelerator.certainty import assure_tasks
from twin.pricing.prediction import Prediction


@frozen
class Judged:
    """A published network: its error, and what its parts deviate by, in logarithms.

    Parameters
    ----------
    error : float
        log(measured / predicted).
    parts_sd : float
        Of its time by part, a network's own deviation held out.
    """

    name: str
    family: str
    error: float
    parts_sd: float


def list_judged(version: str = VERSION) -> tuple[Judged, ...]:
    """Return every published network of a tool version, predicted."""
    found = [_judge(name, family_of(name), ms, said) for name, ms, said in predict_judged(version)]
    if version == VERSION:
        found += [_judge(case.name, "speech", case.measured_ms, case.prediction)
                  for case in list_speech_cases()]
    return tuple(found)


def _judge(name: str, family: str, measured_ms: float, said: Prediction) -> Judged:
    draw = assure_tasks(said).draw
    parts = float(draw.time @ draw.covariance @ draw.time) + draw.row_sd**2
    return Judged(name=name, family=family, parts_sd=math.sqrt(parts),
                  error=math.log(measured_ms * 1e3 / said.time_us))


def fit_network_sd(rows: Sequence[Judged]) -> float:
    """Return the deviation of a whole network that makes errors as large as stated, by families.

    Notes
    -----
    The least s for which the mean over families of the mean of e^2 / (s^2 + parts^2) is at most
    one.
    """
    families = sorted({row.family for row in rows})

    def excess(sd: float) -> float:
        means = []
        for family in families:
            own = [row.error**2 / (sd**2 + row.parts_sd**2) for row in rows if row.family == family]
            means.append(sum(own) / len(own))
        return sum(means) / len(means)

    low, high = 1e-3, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 1 else (low, middle)
    return high


def scale_left_out(rows: Sequence[Judged]) -> float:
    """Return how much larger errors of families held out are than stated without them, at least 1.

    Notes
    -----
    sqrt of the mean over families of the mean of e^2 / (s^2 + parts^2), s from the other families.
    """
    means = []
    for family in sorted({row.family for row in rows}):
        own = [row for row in rows if row.family == family]
        sd = fit_network_sd([row for row in rows if row.family != family])
        means.append(sum(row.error**2 / (sd**2 + row.parts_sd**2) for row in own) / len(own))
    return max(1.0, math.sqrt(sum(means) / len(means)))


def hold_families_out(rows: Sequence[Judged]) -> list[tuple[Judged, float]]:
    """Return each network with how far its interval reaches, learnt from the other families."""
    judged = []
    for row in rows:
        others = [other for other in rows if other.family != row.family]
        reach = student_band(len({other.family for other in others})).up
        judged.append((row, reach * math.hypot(fit_network_sd(others), row.parts_sd)))
    return judged


def main() -> None:
    """Print every network, the coverage, and the deviation all of them give."""
    rows = list_judged()
    judged = hold_families_out(rows)
    inside = sum(abs(row.error) <= reach for row, reach in judged)
    low, high = coverage_band(len({row.family for row in rows}))
    lines = ["| network | family | measured / twin | interval |", "|" + " --- |" * 4]
    lines += [f"| {row.name} | {row.family} | {math.exp(row.error):.2f} | "
              f"{math.exp(-reach):.2f} to {math.exp(reach):.2f} |" for row, reach in judged]
    lines.append(f"\n{inside} of {len(judged)} inside intervals of 90 %, families held out (by "
                 f"chance {low:.0%} to {high:.0%} of families); network deviation of all "
                 f"{fit_network_sd(rows):.3f}, times {scale_left_out(rows):.2f} by which families "
                 "held out exceed it, is what the runtime's file states")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
