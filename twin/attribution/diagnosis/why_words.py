"""Sentences of `why`: a row for each cause, what it leaves, and the question to ask next."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from hwmodels.quantities import format_frequency, format_time
from twin.attribution.diagnosis.faults import JOINED, UNIT
from twin.attribution.diagnosis.outlook import (
    CAUSES,
    DATA,
    FIXED,
    NOTABLE,
    UNREACHED,
    Hypothesis,
    Outlook,
    choose,
)
from twin.pricing.prediction import Prediction

BEYOND = 2.0
"""Times what causes reach from which a part of a time is stated as unexplained (assumed)."""

LEAST_LEFT = 0.1
"""Share of what is to be explained a stated cause leaves at least, to be worth a line."""

ARENA_SD = 0.07
"""Of the logarithm of the least arena: other commits, kernels and alignments of a release ask for
up to 6.6 % more or less (docs/arena.md), one of 1,539 files for 34 %."""

HEALTHY, CERTAIN, SLIPPED = 0.7, 0.001, 0.1
"""Probability of "as expected" from which no question is asked; of a cause whose answer is known;
and from which a slip of the unit is asked for first: assumed."""


@frozen
class Row:
    """A cause, weighed.

    Parameters
    ----------
    cause, says, detail
        Its name, in words, and the likeliest size.
    probability, alone
        That it is present; that it is the only one.
    explains_us
        What it would add to the expected time by itself.
    change
        The line of the build to change.
    question
        What shows whether it is present.
    """

    cause: str
    says: str
    detail: str
    probability: float
    alone: float
    explains_us: float
    change: str
    question: str


def describe_unexplained(measured_us: float, reach_us: float) -> Iterator[tuple[str, str]]:
    """Yield the part of a time far beyond what causes reach, under its name."""
    if measured_us > BEYOND * reach_us:
        yield "unexplained", (
            f"{format_time(measured_us - reach_us)}: half of the likely causes that are left, two "
            f"at once, reach at most {format_time(reach_us)}; is the unit right, and is it of this "
            "network and board?")


def describe_left(gap_us: float, rows: Sequence[Row], present: Collection[str],
                  both: float) -> Iterator[tuple[str, str]]:
    """Yield what a stated cause leaves of a gap, where that is a notable part of it."""
    for row in rows if len(present) == 1 else ():
        left_us = gap_us - row.explains_us
        if row.cause in present and left_us > LEAST_LEFT * gap_us:
            yield "left", (
                f"{format_time(left_us)} of the {format_time(gap_us)}: {row.cause}"
                f"{f' ({row.detail})' * bool(row.detail)} makes {format_time(row.explains_us)}; "
                f"the rest is a second cause ({100 * both:.0f} %) or within the interval of the "
                "expected time")


def write_row(cause: str, found: Sequence[Hypothesis], weights: np.ndarray,
               chances: Mapping[tuple[str, ...], float], expected_us: float,
               base: Prediction) -> Row:
    """Return what is said of a cause, in its likeliest size."""
    best = found[max((place for place, one in enumerate(found) if cause in one.causes),
                     key=lambda place: float(weights[place]))]
    place = min(best.causes.index(cause), len(best.faults) - 1)
    fault, size = best.faults[place], best.sizes[place]
    data, made = CAUSES[cause], (base.deployment.board, base.deployment.runtime.name)
    added_us = best.take_us(expected_us, base.time_us) - expected_us
    together = f"{'-' if added_us < 0 else '+'}{format_time(abs(added_us))} together"
    met_us = base.time_us if fault.kind in FIXED else expected_us
    return Row(
        cause=cause, says=choose_text(data["says"], *made), detail=(
            fault.name + " together" * (JOINED in fault.kind)
            + "".join(f"; with {name} ({other.name}) {together}"
                      for name, other in zip(best.causes, best.faults, strict=False)
                      if name != cause and len(best.faults) > 1)) * bool(size) + (
            ", which affects only the other times" if 0 < abs(size) < NOTABLE else ""),
        probability=math.fsum(chance for key, chance in chances.items() if cause in key),
        alone=chances.get((cause,), 0.0), question=choose_text(data["question"], *made),
        explains_us=met_us * (math.exp(size) - 1),
        change=choose_text(data.get("change", ""), *made) or fault.remedy)


def choose_text(texts: str | Mapping[str, str], board: Board, library: str = "") -> str:
    """Return a text of `causes.yaml`; of several that for a board and a library."""
    return texts if isinstance(texts, str) else str(choose(texts, board, "", library))


def list_open(rows: Sequence[Row], known: Collection[str], as_expected: float) -> Sequence[Row]:
    """Return the two likeliest causes that are open; none where nothing is likely the matter."""
    return [row for row in rows if row.cause not in known][:2 * (as_expected < HEALTHY)]


def choose_question(rows: Sequence[Row], present: Collection[str], as_expected: float) -> str:
    """Return that of the first two causes which is nearer to even odds, "" where none is open.

    A slip of the unit that is likelier than `SLIPPED` is asked for before.
    """
    open_ones = list_open(rows, present, as_expected)
    if open_ones and any(row.cause == UNIT and UNIT not in present and row.probability > SLIPPED
                         for row in rows):
        return UNIT  # One look shows it, and all else depends on it.
    best = min(open_ones, key=lambda row: abs(row.probability - 0.5), default=None)
    return "" if best is None or not CERTAIN < best.probability < 1 - CERTAIN else best.cause


def name_contradiction(outlook: Outlook, found: Sequence[Hypothesis], weights: np.ndarray,
                        offs: np.ndarray) -> Iterator[str]:
    """Yield which numbers no cause explains together, where that is likelier than not."""
    apart = math.fsum(weight for one, weight in zip(found, weights.tolist(), strict=True)
                      if one.causes == ("other",) and one.own_sd[0])
    for base, off in zip(outlook.bases[1:], offs[1:] - offs[0], strict=True) if apart > 0.5 else ():
        board = base.deployment.board
        yield (f"the times contradict each other: {base.deployment.graph.name} at "
               f"{format_frequency(board.core_clock.frequency_hz)} takes "
               f"{math.exp(off):.2g} x what the first one lets expect, and no listed cause does "
               "that; is one of another build, network, board or clock?")


def note_misfits(outlook: Outlook, published_us: float | None,
                  arena_bytes: int | None) -> tuple[str, ...]:
    """Say what does not fit what was stated."""
    base, notes = outlook.bases[0], []
    deployment = base.deployment
    if published_us is not None and abs(math.log(published_us / base.time_us)) > 2 * outlook.sd:
        notes.append(f"published is {published_us / base.time_us:.2g} x what is predicted: of "
                       "another board, clock, library or network?")
    if arena_bytes is not None and deployment.buffer is not None:
        needed = deployment.buffer.needed_bytes
        if arena_bytes < needed:
            notes.append(f"an arena of {arena_bytes:,} bytes is less than the {needed:,} this "
                           f"network needs with {deployment.runtime.identity}, known to "
                           f"{100 * ARENA_SD:.0f} %: of another network or release"
                           f"{', or not in bytes' * (arena_bytes < needed / 4)}?")
        room = deployment.board.memory(deployment.arena).size_bytes
        if arena_bytes > room:
            notes.append(f"an arena of {arena_bytes:,} bytes does not fit {deployment.arena}: "
                           "say where it is, such as --arena psram")
    return tuple(notes)


def list_unweighed(outlook: Outlook) -> list[str]:
    """Return causes that are chosen as kernels are compiled, where they come compiled."""
    lacked = UNREACHED | {*CAUSES["reference"]["kinds"] * (outlook.library != "none")}
    return [name for name, cause in CAUSES.items() if lacked.issuperset(cause["kinds"])] * (
        outlook.bases[0].deployment.runtime.name in DATA["prebuilt"])


def describe_compiled(outlook: Outlook) -> Iterator[tuple[str, str]]:
    """Yield that no option of a compiler reaches the kernels of a library, where none does."""
    if names := list_unweighed(outlook):
        name = outlook.bases[0].deployment.runtime.name
        assumed = any("optimisation" in one.causes for one in outlook.hypotheses)
        yield "library", (f"{name} comes compiled, no option of your compiler changes its kernels: "
                          + ("say which library runs (--runtime)" if assumed else
                             f"not weighed: {', '.join(names)}"))

