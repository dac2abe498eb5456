"""Which further measurement would tell two explanations apart: another clock, or a healthy board.

    what a clock changes = log(cycles there / cycles here), under each explanation

Prices are off alike at both clocks, so most of their error cancels: what waits for a memory takes
fewer cycles where the core is slower, and what does not wait takes as many. A clock shows where
two explanations differ by several times what is left of that error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hwmodels.errors import TwinError
from hwmodels.file_cache import read_yaml_once
from twin.attribution.diagnosis.again import CHANGED_SD, PLACED, alter, describe_changes
from twin.attribution.diagnosis.fault_effects import Effect, Forecasts, Pattern
from twin.attribution.diagnosis.faults import (
    COUNTER,
    DECLARED,
    JOINED,
    ONE_FACTOR,
    REPEATED,
    UNKNOWN,
    Fault,
)
from twin.attribution.diagnosis.finding import Diagnosis
from twin.attribution.diagnosis.likelihood import price_errors
from twin.attribution.diagnosis.marks import clock_hz_of
from twin.deployment.deployment import Deployment
from twin.pricing.calibration import Calibration
from twin.pricing.prediction import Prediction

CLOCKS_HZ = (16e6, 48e6)
"""Other clocks that are tried: most parts reach them, with few wait states."""

AGAIN = "then twin diagnose with --also DIR of it"
"""Weighs both measurements together."""

DISTINCT_SD = 2.0
"""A clock distinguishes explanations that differ by so many standard deviations."""

LEAST = 0.03
"""Explanations less probable are not worth a measurement."""


OTHERWISE: Mapping[str, str] = read_yaml_once(Path(__file__).with_name("otherwise.yaml"))
"""By kind, what distinguishes it from others where no clock does."""

TIMED, BUILT = OTHERWISE[COUNTER], OTHERWISE["SIMD"]


def choose_rivals(found: Diagnosis) -> list[Fault]:
    """Return the two likeliest explanations, each by its likeliest variant, if both are predicted.

    None, where one of them is not: telling others apart would not tell it. "None of these" says
    nothing of a clock, and no clock shows what changes nothing here: the next is tried.
    """
    likely = [kind for kind, chance in found.kinds.items() if chance >= LEAST and kind != UNKNOWN]
    best = [one.fault for one in found.members if len(found.members) > 1] or [
        next(one.fault for one in found.findings if one.kind == kind) for kind in likely]
    rivals = [fault for fault in best if fault.name not in found.indistinct][:2]
    by_clock = all(fault.kind in (DECLARED, COUNTER) or (
        fault.deployment is not None and not fault.shifts_clock and JOINED not in fault.kind)
        for fault in rivals)
    return rivals if by_clock and rivals and rivals[0] is found.verdict.fault else []


def tell_otherwise(found: Diagnosis, ticks: str = "", *, native: bool = False) -> str:
    """Say what distinguishes the two likeliest kinds where no clock is known to.

    Parameters
    ----------
    found
        Of which no clock that was tried distinguishes the likeliest two.
    ticks
        What a clock of a log's ticks asks to be stated first; "" without.
    native
        On a computer with an operating system, where nobody masks interrupts.

    Returns
    -------
    str
        A sentence; it says so where cycles alone cannot. Two causes are distinguished: "none of
        these" is not a cause, and stands beside one only where it is likeliest or no other is left.
    """
    listed = [kind for kind, chance in found.kinds.items() if kind != UNKNOWN and chance >= LEAST]
    if len(found.members) > 1:
        listed = [one.fault.kind for one in found.members]
    if next(iter(found.kinds)) == UNKNOWN:
        listed = listed[:1]
    first, second = tuple(dict.fromkeys((*listed, UNKNOWN, *found.kinds)))[:2]
    text = f"{first} or {second}: "
    pair = next((kind for kind in (first, second) if JOINED in kind), "")
    ways = [OTHERWISE[part] for kind in (first, second) for part in kind.split(JOINED)
            if part in OTHERWISE and not (native and part == "interrupts")
            and (found.origin == "measured" or OTHERWISE[part] != TIMED)]
    if pair:
        ways.append(f"mend {pair.split(JOINED)[0]} alone and measure again: what is left is "
                    "the other, or none")
    if not (found.healthy or found.verdict.kind == ONE_FACTOR):  # a stop-watch is nearer at hand
        image = ("an image known to have the kernels asked for" if BUILT in ways else  # the same is
                 "the same image where it is known to be right")  # then right on no board
        ways.insert(ways[:1] in ([TIMED], [BUILT]), f"measure {image} (--healthy)")
    if ticks:
        ways.insert(0, ticks)
    return text + ("; or ".join([*dict.fromkeys(ways)][:2]) if ways else
                   "no measurement of cycles does, as one of them is any other cause; count "
                   "instructions and cache misses where a core can")


def tell_apart(rivals: Sequence[Fault], deployment: Deployment, forecasts: Forecasts,
               prices: Calibration | None, base: Prediction, pattern: Pattern,
               taken: Mapping[str, object]) -> str:
    """Say which measurement distinguishes the two likeliest explanations.

    Parameters
    ----------
    rivals
        From `choose_rivals`.
    forecasts
        Keeps what is predicted.
    pattern
        Whose layers are weighed.
    taken
        What was otherwise in a second measurement that is there already.

    Returns
    -------
    str
        A sentence; "" where there are no two, or no clock distinguishes them.
    """
    if len(rivals) < 2 or pattern.quantity != "cycles":
        return ""
    here = clock_hz_of(deployment)
    clock = f"clocks.{deployment.board.core.clock}.frequency_hz"
    best: tuple[float, str] = (0.0, "")
    tried: list[Mapping[str, object]] = [
        {clock: hertz} for hertz in deployment.board.core_clock.settings_hz or CLOCKS_HZ
        if hertz <= 0.7 * here]
    tried += [{"placement.weights": memory.name} for memory in deployment.board.memories
              if memory.role == "sram" and memory.name != deployment.weights][:1]
    for changes in tried:
        found = [_change(fault, deployment, changes, forecasts, prices, base, pattern)
                 for fault in rivals]
        if changes == taken or any(one is None for one in found):
            continue
        (first, moved), (second, other) = (one for one in found if one is not None)
        unsure = (moved - other)[None, :]
        # what data do elsewhere is as unsure as it is where it was measured so
        placed = CHANGED_SD * max(abs(first), abs(second)) * any(
            path.startswith(PLACED) for path in changes)
        sd = math.sqrt(float(price_errors(unsure, unsure)[0, 0]) + 2 * REPEATED**2 + placed**2)
        apart = abs(first - second) / sd
        if apart > max(best[0], DISTINCT_SD):
            best = (apart, f"measure again {describe_changes(changes)}: {math.exp(first):.3f} x "
                           f"the cycles if {rivals[0].name}, {math.exp(second):.3f} x if "
                           f"{rivals[1].name} ({_say_how(deployment, changes)}; {AGAIN})")
    return best[1]


def _say_how(deployment: Deployment, changes: Mapping[str, object]) -> str:
    """Return the command that measures otherwise, or what to change for it."""
    model, board = deployment.graph.name, deployment.board.name
    (path, value), = changes.items()
    if isinstance(value, float):
        return (f"set CPU_HZ of firmware/ports/{board}/variant.h, build, flash, twin measure; "
                f"emulated: twin measure {model} -b {board} --virtual NAME --clock "
                f"{value / 1e6:g}MHz")
    return (f"twin firmware build {model} -b {board} --{path.rpartition('.')[2]} {value}, "
            "flash, twin measure")


def _change(fault: Fault, deployment: Deployment, changes: Mapping[str, object],
            forecasts: Forecasts, prices: Calibration | None, base: Prediction, pattern: Pattern,
            ) -> tuple[float, np.ndarray] | None:
    """Log of the whole's change by another set-up, and by how much each cause's share changes."""
    try:
        altered = alter(fault, deployment, changes)
        there = forecasts.foresee(
            replace(altered, name=f"{fault.name} {describe_changes(changes)}"),
            base, prices, pattern)
    except TwinError:
        return None
    here = forecasts.foresee(fault, base, prices, pattern)
    return (float(np.log(np.exp(there.logs).sum() / np.exp(here.logs).sum())),
            _whole_shares(there) - _whole_shares(here))


def _whole_shares(effect: Effect) -> np.ndarray:
    amounts = np.exp(effect.logs)
    return np.asarray((amounts[:, None] * effect.shares).sum(axis=0) / amounts.sum())
