"""Tables of calibrated accuracy: every figure with its n, beside baselines fitted alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.accuracy import calibrated
from benchmarks.accuracy.calibrated import Guess, Validation, energy_r2
from benchmarks.accuracy.report import write_table
from benchmarks.accuracy.scores import NAMES, duel
from benchmarks.accuracy.specifications import BOOSTING, FOUR, PER_MAC
from benchmarks.accuracy.targets import coverage, list_targets
from calibration.fitting.cell import UNSEEN
from calibration.fitting.overlay import list_shipped, read_overlay
from twin.learning.evidence import hash_counts, hash_data, with_energy

MANY = 20
"""Rows from which a 90th percentile is given instead of the largest."""

_COLUMNS = ("held out of the fit", "n", "median", "p90 (max if n < 20)", "within 10 %",
            "within 20 %", "90 % interval covers", "its chance band")
_BASELINES = (PER_MAC, FOUR, BOOSTING)
_TARGET_COLUMNS = ("held out of the fit", "n", "found", "asked for", "")
_UNCLUSTERED = (calibrated.IN_SAMPLE,)


def make_calibrated_report(validation: Validation) -> str:
    """Return the report as Markdown; sealed rows appear as aggregates only.

    Parameters
    ----------
    validation : Validation
        From `validate`.

    Returns
    -------
    str
        Ends with a newline; the same input gives the same text.
    """
    learning = validation.learning
    rows = [o for o in learning.observations if o.whole]
    parts = [
        "Calibrated predictions: prices learnt from the published rows of use `fit` "
        f"({len(rows)} with latency, {len(with_energy(rows))} with energy, and "
        f"{len(learning.observations) - len(rows)} layer shapes of the Apollo510), all boards "
        "pooled. Each line leaves rows out, learns from the rest (the spread between boards too) "
        "and predicts what was held out: |predicted / measured - 1| of one warm inference. "
        "Intervals are nominal 90 %; the chance band is binomial, 95 %, clustered by board.",
        "**What is asked of predictions outside the fit**", _target_table(validation),
        "**Latency, calibrated**", _protocol_table(validation, _time_errors, _time_covered),
        "**Latency, the twin's distribution beside those of baselines, on the rows both predict: "
        "means (less is better), and the middle 90 % of the twin's less theirs when whole networks "
        "on a board are drawn anew (below 0 the twin is better)**",
        _duel_table(validation),
        "**Energy, calibrated: time predicted too**",
        _protocol_table(validation, _energy_errors, _energy_covered, with_r2=True),
        "**Latency, a library held out with all its releases, by library**",
        _library_table(validation),
        "**Layers of the Apollo510 (Cortex-M55): cycles of each distinct shape of kws, predicted "
        "from the other shapes**",
        _layer_table(validation),
        _currency(validation),
    ]
    return "\n\n".join(parts) + "\n"


def _currency(validation: Validation) -> str:
    """Say whether shipped overlays were made with the counts and rows of this code."""
    observations = validation.learning.observations
    stale = []
    for path in list_shipped():
        overlay = read_overlay(path)
        rows = [o for o in observations if overlay.library in (o.cell.library, UNSEEN)]
        if (overlay.made_with["counts_sha256"], overlay.data.sha256) != (
                hash_counts(rows), hash_data(observations)):
            stale.append(f"{path.parent.name}/{path.stem}")
    if stale:
        return ("Shipped overlays that are stale (other counts or rows than this code's; run "
                f"`twin calibrate published -o calibration/shipped`): {', '.join(stale)}.")
    return f"All {len(list_shipped())} shipped overlays were made with the counts of this code."


def _time_errors(guesses: Iterable[Guess]) -> np.ndarray:
    return np.array([guess.time_error for guess in guesses])


def _time_covered(guesses: Iterable[Guess]) -> np.ndarray:
    return np.array([guess.time_covered for guess in guesses], dtype=float)


def _energy_errors(guesses: Iterable[Guess]) -> np.ndarray:
    return np.array([guess.energy_error for guess in guesses])


def _energy_covered(guesses: Iterable[Guess]) -> np.ndarray:
    return np.array([guess.energy_covered for guess in guesses], dtype=float)


def _protocol_table(validation: Validation, errors: Callable[[Iterable[Guess]], np.ndarray],
                    covered: Callable[[Iterable[Guess]], np.ndarray], *, with_r2: bool = False,
                    ) -> str:
    header = (*_COLUMNS, *(("R2 of log energy per MAC",) if with_r2 else ()))
    rows = []
    for name, guesses in validation.guesses.items():
        known = [guess for guess, error in zip(guesses, errors(guesses), strict=True)
                 if math.isfinite(error)]
        if not known:
            continue
        low, high, inside = coverage(known, covered(known))
        band = "-" if name in _UNCLUSTERED else f"{100 * low:.0f} to {100 * high:.0f} %"
        r2 = energy_r2(known) if with_r2 else math.nan
        rows.append([name, *_figures(errors(known)), f"{100 * inside:.0f} %", band,
                     *(["-" if math.isnan(r2) else f"{r2:.2f}"] if with_r2 else [])])
    return write_table(header, rows)


def _figures(log_errors: np.ndarray) -> list[str]:
    errors = 100 * np.abs(np.expm1(-log_errors))
    return [str(len(errors)), f"{np.median(errors):.1f} %", _tail(errors),
            f"{100 * np.mean(errors <= 10):.0f} %", f"{100 * np.mean(errors <= 20):.0f} %"]


def _tail(errors: np.ndarray) -> str:
    if len(errors) < MANY:
        return f"max {errors.max():.1f} %"
    return f"{np.percentile(errors, 90):.1f} %"


def _duel_table(validation: Validation) -> str:
    rows = []
    for protocol, guesses in validation.guesses.items():
        for name in _BASELINES:
            found = None if protocol in _UNCLUSTERED else duel(guesses, name)
            if found is not None:
                rows.append([protocol, name, str(found.rows), *(
                    f"{ours:.1f} %, {theirs:.1f} %" for ours, theirs in found.errors_pct), *(
                    f"{ours:.2f}, {theirs:.2f}: {low:+.2f} to {high:+.2f}"
                    for ours, theirs, (low, high) in zip(
                        *found.scores, found.differences, strict=True))])
    return write_table(("held out of the fit", "baseline", "n", "median: twin, baseline",
                   "p90: twin, baseline", *(
        f"{name}: twin, baseline" for name in NAMES)), rows)


def _target_table(validation: Validation) -> str:
    return write_table(_TARGET_COLUMNS, [
        [target.what, str(target.rows), target.found, target.wanted,
         "met" if target.met else "**not met**"] for target in list_targets(validation)])


def _library_table(validation: Validation) -> str:
    """By library held out: its prices came from the spread between the others."""
    guesses = validation.guesses.get(calibrated.LIBRARY, ())
    rows = []
    for library in dict.fromkeys(guess.observation.cell.library for guess in guesses):
        own = [guess for guess in guesses if guess.observation.cell.library == library]
        errors = 100 * np.abs(np.expm1(-_time_errors(own)))
        reach = [math.exp(guess.time_band.up * guess.time_sd) for guess in own]
        rows.append([library, str(len(own)), f"{np.median(errors):.1f} %", f"{errors.max():.1f} %",
                     f"{100 * _time_covered(own).mean():.0f} %", f"x{np.median(reach):.1f}"])
    return write_table(("library", "n", "median", "largest", "90 % interval covers",
                   "its reach, median"), rows)


def _layer_table(validation: Validation) -> str:
    errors = {name: 100 * math.expm1(-error) for name, error in validation.layers.items()}
    rows = [[name, f"{error:+.1f} %"] for name, error in errors.items()]
    median = float(np.median([abs(error) for error in errors.values()])) if errors else math.nan
    rows.append([f"median of {len(errors)}", f"{median:.1f} %"])
    return write_table(("layer", "predicted / measured - 1"), rows)
