"""`twin why`: which causes explain measured times that are longer than expected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import Any

from hwmodels.quantities import format_frequency, format_time, significant
from twin.api.commands.predict import check_set_once, deploy_as_stated
from twin.api.requests import takes
from twin.api.requests.attribution import Why
from twin.api.requests.values import parse_clock, parse_quantity, read_pairs, split_words
from twin.attribution.diagnosis import outlook as foreseeing
from twin.attribution.diagnosis import why as weighing
from twin.attribution.diagnosis.marks import clock_hz_of
from twin.attribution.diagnosis.outlook import NOTABLE
from twin.attribution.lower_bound import find_unreachable
from twin.deployment.core import describe_clock
from twin.deployment.deployment import Deployment
from twin.errors import UsageError
from twin.pricing.prediction import Prediction

FAR = 100.0
"""Times what is predicted from which nothing was published of it (assumed)."""

MOST = 1e9
"""Times what is predicted from which a time is of no inference: a slip of the unit by a million,
and the slowest of builds besides."""


@takes(Why)
def why(asked: Why) -> weighing.Why:
    """Weigh which causes explain one measured time, or several: of other clocks, other networks.

    Raises
    ------
    UsageError
        For a time or a cause that is not understood, a folder of a measurement, or cycles that are
        not of the first time.
    """
    models, times, clocks = zip(*(_read_time(text, asked.model) for text in split_words(
        asked.measured)), strict=True)
    if models[0] != asked.model:
        raise UsageError(f"--measured {models[0]}=...: the first time is of {asked.model} itself; "
                         f"accepted: --measured TIME, then --measured {models[0]}=TIME")
    priors = _read_priors(asked.priors)
    published = None if asked.published is None else _read_us(asked.published, "--published")
    arena = None if asked.arena_bytes is None else int(
        parse_quantity(asked.arena_bytes, "bytes", "--arena-bytes"))
    present, absent = _read_answers(asked, priors)
    deployments = _deploy(asked, models, times, clocks)
    hertz = None if asked.cycles is None else observe_clock(asked.cycles, times[0], deployments[0])
    if hertz is not None and "clock" in absent and hertz != clock_hz_of(deployments[0]):
        raise UsageError(f"--not clock: --cycles {asked.cycles} in {format_time(times[0])} are "
                         f"{format_frequency(hertz)}; accepted: one of the two")
    outlook = foreseeing.foresee(deployments, calibration=fspath(asked.calibration), clock_hz=hertz,
                                 library=foreseeing.describe_library(asked.runtime))
    _check_times(asked, times[0], published, outlook.bases[0])
    unreachable = [*_list_unreachable(outlook.bases, times)]
    if unreachable:
        priors |= {"expected": 0.0}
    given: dict[str, Any] = {"published_us": published, "present": present, "absent": absent,
                             "priors": priors, "arena_bytes": arena}
    found = weighing.explain(outlook, times, **given)
    unlike = dict.fromkeys(text for one, clock in (*((one, None) for one in deployments),
                                                   (deployments[0], hertz))
                           for text in describe_clock(one.board, clock))
    return replace(found, answered=weighing.count_answers(outlook, times, **given), remarks=(
        *unlike,
        *(f"{one}: is the unit right, or is it of another network or board?"
          for one in unreachable), *found.remarks),
                   also=(*found.also,
                         *_describe_further(outlook.bases, times, found.expected_us),
                         *_describe_cycles(asked.cycles, hertz, outlook.bases[0]),
                         *_describe_stated(published, found.expected_us, outlook.bases[0].time_us,
                                           present, absent)))


def _read_answers(asked: Why, priors: Mapping[str, float]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the causes that are known to be there, and known not to be.

    Raises
    ------
    UsageError
        For a cause there is not, more than two that are there, and one of both.
    """
    present, absent = (split_words(words or "") for words in (asked.present, asked.absent))
    weighing.check_causes((*present, *absent, *({*priors} - {"expected"})))
    if len(set(present)) > 2:
        raise UsageError(f"--is {' --is '.join(present)}: at most two causes are weighed together; "
                         "accepted: the two largest")
    if both := set(present) & set(absent):
        raise UsageError(f"{both.pop()}: --is and --not exclude each other")
    return present, absent


def _deploy(asked: Why, models: Sequence[str], times: Sequence[float],
            clocks: Sequence[float | None]) -> list[Deployment]:
    """Return the deployment each time is of.

    Raises
    ------
    UsageError
        For two times of one, and one that is less than a cycle.
    """
    deployed = {}
    for model in dict.fromkeys(models):
        deployment = deploy_as_stated(
            model, asked.board, runtime=asked.runtime, clock_hz=asked.clock_hz,
            weights=asked.weights, arena=asked.arena, changes=asked.changes,
            assume_unsupported=asked.assume_unsupported, calibration=fspath(asked.calibration))
        check_set_once(deployment.board, asked)
        deployed[model] = deployment.replace(asked.changes) if asked.changes else deployment
    deployments = [foreseeing.at_clock(deployed[model], clock)
                   for model, clock in zip(models, clocks, strict=True)]
    if len({*zip(models, map(clock_hz_of, deployments), strict=True)}) < len(times):
        raise UsageError("--measured: two times of one network at one clock; accepted: one of each "
                         "(the median of its runs), others as TIME@CLOCK or NETWORK=TIME")
    for text, time, deployment in zip(split_words(asked.measured), times, deployments, strict=True):
        if time * clock_hz_of(deployment) < 1e6:
            raise UsageError(f"--measured {text}: is less than a cycle of the core at "
                             f"{format_frequency(clock_hz_of(deployment))}; accepted: the time of "
                             "an inference")
    return deployments


def _check_times(asked: Why, time_us: float, published_us: float | None, base: Prediction) -> None:
    """Refuse what cannot have been published of this network, and a time nobody waits for."""
    if time_us > MOST * base.time_us:
        raise UsageError(f"--measured {asked.measured} is {time_us / base.time_us:.1g} x the "
                         f"{format_time(base.time_us)} that are predicted; accepted: the time of "
                         "an inference")
    if published_us is None:
        return
    if not 1 / FAR < published_us / base.time_us < FAR:
        raise UsageError(f"--published {asked.published} is "
                         f"{significant(published_us / base.time_us)} x the "
                         f"{format_time(base.time_us)} that are predicted; accepted: a time of "
                         f"this network and board, within {FAR:g} x of it")
    for text in _list_unreachable([base], [published_us]):
        raise UsageError(f"--published {asked.published}: {text}; accepted: a time of this network "
                         "and board")


def _describe_stated(published_us: float | None, expected_us: float, predicted_us: float,
                     present: Sequence[str], absent: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what was published beside what is predicted, and which causes are stated."""
    if published_us is not None:
        yield "published", (f"{format_time(published_us)}, {published_us / predicted_us:.3g} x "
                            f"predicted: moves what is expected from {format_time(predicted_us)} "
                            f"to {format_time(expected_us)}")
    if stated := [*present, *(f"not {name}" for name in absent)]:
        yield "answers", ", ".join(stated)


def _describe_further(bases: Sequence[Prediction], times_us: Sequence[float],
                      first_us: float) -> Iterator[tuple[str, str]]:
    """Yield each time but the first beside what is expected, moved as the first one's is."""
    for base, time_us in zip(bases[1:], times_us[1:], strict=True):
        expected_us = base.time_us * first_us / bases[0].time_us
        name, core = base.graph.name, base.board.clock(base.clock)
        yield "clock" if name == bases[0].deployment.graph.name else "network", (
            f"{format_time(time_us)}, {time_us / expected_us:.3g} x expected: {name} at "
            f"{format_frequency(core.frequency_hz)}, expected {format_time(expected_us)}")


def _describe_cycles(cycles: int | None, hertz: float | None,
                     base: Prediction) -> Iterator[tuple[str, str]]:
    """Yield the clock that was counted beside the one asked for."""
    if hertz is not None:
        asked_hz = base.board.clock(base.clock).frequency_hz
        yield "cycles", (f"{cycles:,}: the core runs at {format_frequency(hertz)}, expected "
                         f"{format_frequency(asked_hz)}")


def observe_clock(cycles: int, time_us: float, deployment: Deployment) -> float:
    """Return the core's clock in hertz by its cycles in a time; near the one asked for, that."""
    if cycles <= 0:
        raise UsageError(f"--cycles {cycles}: is no count; accepted: a whole number above 0")
    clock = deployment.board.core.clock
    hertz, asked_hz = cycles / time_us * 1e6, deployment.board.clock(clock).frequency_hz
    off = math.log(hertz / asked_hz)
    if abs(off) < NOTABLE:
        return asked_hz
    if not -math.log(1000) < off < 0:
        raise UsageError(f"--cycles {cycles}: in {format_time(time_us)} these are "
                         f"{format_frequency(hertz)}, {clock} runs at "
                         f"{format_frequency(asked_hz)}; accepted: cycles of the core in the first "
                         "time; another clock: --clock")
    return float(f"{hertz:.3g}")  # No time states more digits.


def _list_unreachable(bases: Sequence[Prediction], times_us: Sequence[float]) -> Iterator[str]:
    """Yield what is shorter than the units that multiply can be, whatever the library."""
    for base, time_us in zip(bases, times_us, strict=True):
        board = base.board
        hertz = board.core_clock.frequency_hz
        over = find_unreachable(base.graph, board, {None: time_us * hertz / 1e6}, hertz)
        if over is not None:
            yield over.tell()


def _read_time(text: str, model: str) -> tuple[str, float, float | None]:
    """Read a time, the network it is of and the clock it was measured at if these are given."""
    other, is_other, word = text.rpartition("=")
    time, at, clock = word.partition("@")
    if Path(text).is_dir():
        raise UsageError(f"--measured {text} is a folder: times of layers say more; accepted: "
                         f"a time, or: twin diagnose {text}")
    return (other if is_other else model, _read_us(time, "--measured"),
            parse_clock(clock, "--measured") if at else None)


def _read_us(text: str, option: str) -> float:
    return parse_quantity(text.strip(), "ns", option) / 1e3


def _read_priors(text: str | None) -> dict[str, float]:
    """Read CAUSE=WEIGHT words."""
    given = read_pairs(split_words(text or ""), "CAUSE=WEIGHT", "clock=3")
    try:
        weights = {name: float(weight) for name, weight in given.items()}
    except ValueError:
        weights = {"": -1.0}
    if any(not 0 <= weight < 1e6 for weight in weights.values()) or weights.get(
            "expected", 0.0) > 0.75:
        raise UsageError(f"--prior {text}: accepted: CAUSE=WEIGHT with a weight from 0 to below "
                         "1,000,000, and expected=P up to 0.75")
    return weights
