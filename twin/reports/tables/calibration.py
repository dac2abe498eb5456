"""What a calibration learnt: prices with their uncertainty, residuals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calibration.fitting.intervals import concentrate
from calibration.fitting.overlay import KEEPS_PRIOR, STANDS_IN, TIED, Entry, Learnt, Overlay
from hwmodels.quantities import significant
from twin.pricing.calibration import MOVED
from twin.reports.columns import Column, number
from twin.reports.tables.parts import Content, Table, Text, new_pairs, spaced, tabulate

AWAY = 1e-3
"""Of the logarithm of a total: a smaller move away from what was measured is not named."""

AS_BEFORE = "as far from what is stated as before"
"""Of a price the rows do not move, by less than `MOVED`."""

FAULTY, FAULTY_AMONG_MOVED = 1.6, math.log(1.8)
"""Logarithm of five: a row so far from what prices explain is likelier a fault; and of what is
enough where half of all prices moved by `MOVED`, as they do where rows of one operator are taken
for outliers (assumed)."""


def overlay_table(overlay: Overlay, entry: Entry, before: Sequence[float] = ()) -> Content:
    """Return one entry of an overlay: what it rests on, its factors, its residuals.

    Parameters
    ----------
    before
        Factors of time that a prediction takes without it; empty: not known.
    """
    time, energy = entry.time, entry.energy
    learnt = energy if energy is not None and energy.rows and not entry.powers_of else None
    pairs = [
        ("board", str(entry.board)), ("runtime", entry.runtime),
        ("data", " and ".join(overlay.data.kinds)), ("rows", _rows(time)),
        ("unexplained", f"{100 * time.network_sd:.1f} % of a network, "
                        f"{100 * time.row_sd:.1f} % of a row (sd; of a single layer "
                        f"{concentrate(np.ones(1)):.1f} times that)"),
    ]
    if time.rows and learnt is None:
        pairs.append(("energy", "no row measured it: powers are " + (
            f"as shipped, of {entry.powers_of}" if entry.powers_of else
            "stated by the board's file" if energy is None else "those of other boards")))
    if time.confused and not time.tied:
        pairs.append(("known as sums", "; ".join(" + ".join(pair) for pair in time.confused)))
    tied = [name for name, why in time.doubtful(overlay.time_prices).items() if why == TIED]
    if tied:
        pairs.append(("fitted as one", ", ".join(tied) + ": no row asks for prices of their own; "
                      "one factor on what was believed of each, which differed"))
    parts: list[Content] = [new_pairs(pairs), _factors(overlay.time_prices, time, "time", before)]
    if learnt is not None:
        parts.append(_factors(overlay.energy_prices, learnt, "energy"))
    drawn = {} if learnt is None else learnt.residuals
    worst = max([*time.residuals.items(), *((f"energy of {name}", off) for name, off in
                                            drawn.items())],
                key=lambda item: abs(item[1]), default=None)
    moved = [abs(log - math.log(old)) for log, old in zip(time.log, before, strict=False)]
    limit = FAULTY_AMONG_MOVED if moved and np.median(moved) > MOVED else FAULTY
    if worst is not None:
        percent = round(100 * math.expm1(worst[1]), 1) + 0.0  # no minus before a zero
        parts.append(Text(f"largest residual: {percent:+.1f} % ({worst[0]})"
                          + ", or a fault: `twin diagnose` first" * (abs(worst[1]) > limit)))
    return spaced(parts)


def totals_table(totals: Sequence[Any], kind: str = "measured") -> Table:
    """Return what each folder's timed layers take: as predicted before, now, and measured.

    A network that is further from what was measured than before is named.
    """
    away = ", ".join(one.folder for one in totals if abs(math.log(one.now_us / one.measured_us))
                     > AWAY + abs(math.log(one.before_us / one.measured_us)))
    return tabulate((
        Column("folder"), number("before, ms", "before_us", _show_ms),
        number("now, ms", "now_us", _show_ms), number(f"{kind}, ms", "measured_us", _show_ms)),
        totals, f"Sum of layers: predicted before and now, {kind}" + bool(away) * (
            f"; {away}: further from it than before, as prices are shared with the other rows"))


def _show_ms(time_us: float) -> str:
    return significant(time_us / 1e3, 4)


def _rows(time: Learnt) -> str:
    if not time.rows:
        return f"{len(time.residuals)} of micro-benchmarks, none of a network"
    return (f"{time.rows}, which decide {time.effective_parameters:.1f} of {len(time.log)} prices "
            "(effective parameters, with those of their family); the rest stay as stated")


def _factors(names: Sequence[str], learnt: Learnt, what: str,
             before: Sequence[float] = ()) -> Table:
    """Factors on stated prices and those of before, and one deviation before and after the data."""
    doubtful, variances = learnt.doubtful(names), learnt.matrix().diagonal()
    ratios = [math.exp(log) / old for log, old in zip(learnt.log, before, strict=False)]
    doubtful |= {name: AS_BEFORE for name, ratio in zip(names, ratios, strict=False)
                 if doubtful.get(name) == STANDS_IN and abs(math.log(ratio)) < MOVED}
    return tabulate((
        Column(f"price of {what}", lambda place: names[place]),
        number("x stated", lambda place: math.exp(learnt.log[place]), "{:.3f}"),
        number("x before", lambda place: ratios[place], "{:.3f}") if ratios else None,
        number("sd, %", lambda place: 100 * math.sqrt(max(variances[place], 0.0)), "{:.1f}"),
        number("stated sd, %", lambda place: 100 * learnt.prior_sd[place], "{:.1f}"),
        Column("", lambda place: doubtful.get(names[place]))), range(len(names)))


def list_doubtful(time: Learnt, names: Sequence[str], far: Sequence[str]) -> Iterator[str]:
    """Say which prices are no findings, and why."""
    kept, tied, unclear = list[str](), list[str](), list[str]()
    for name, reason in time.doubtful(names).items():
        if reason != STANDS_IN:
            {KEEPS_PRIOR: kept, TIED: tied}.get(reason, unclear).append(name)
    helps = ("micro-benchmarks tell (twin plan)" if "call" in names  # a price of cores
             else "logs of other networks would distinguish them")
    for found, why in (
            (far, "further from what is stated or shipped than its spread, or than other prices "
                  "moved: it takes up what the model has no price for or a fault: `twin diagnose` "
                  f"first; {helps}"),
            (kept, "not identifiable from these rows: each stays within its stated sd"),
            (tied, "no row asks for prices of their own: one factor on what was believed of each, "
                   f"and none is a finding by itself; {helps}"),
            (unclear, f"hardly identified, or as sums; none is a finding by itself; {helps}")):
        if found:
            yield f"{', '.join(found)}: {why}"
