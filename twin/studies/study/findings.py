"""What the results of a study say, in words computed from its rows.

Rows that differ in one axis only are set beside each other; the figure of a value is the median
of its ratios to the baseline, and their spread.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean, median

import numpy as np

from hwmodels.files import JsonObject
from hwmodels.frozen import NamedTexts, frozen
from hwmodels.paths.timing import Floats
from hwmodels.quantities import Ends, list_by_key
from twin.pricing.variables import COLD_START
from twin.studies.change import relate_times
from twin.studies.results import Table
from twin.studies.rows import CELLS, UNCERTAIN, Row, find_row, list_known
from twin.studies.study.definition import Budget, Claim, Finding, Study
from twin.studies.study.figures import EDP, figure_of, name_figure, write_level
from twin.studies.study.tasks import MEGABYTE, SOFT, is_accepted

LITTLE = 0.005
"""A ratio this near 1 is reported as no change."""


@frozen
class Effect:
    """A figure of one value over that of the baseline, all else equal.

    Parameters
    ----------
    value
        Of the axis that is compared.
    figure
        A quantity, or `EDP`.
    ratios
        One for every pair of rows, ascending.
    low, high
        Medians of the ends of their intervals; the median itself without any.
    """

    value: str
    figure: str
    ratios: tuple[float, ...]
    low: float
    high: float

    @property
    def median(self) -> float:
        """Of the ratios."""
        return median(self.ratios)

    @property
    def words(self) -> str:
        """The median and its spread, as printed."""
        name = name_figure(self.figure)
        if max(abs(one - 1) for one in self.ratios) < LITTLE:
            return f"{name} as before (within {LITTLE:.1%})"
        return f"{name} x{_spread(self.ratios)}"


def find_baseline(table: Table, finding: Finding) -> str:
    """Return the value others are set beside: the one that is named, or the first."""
    if finding.baseline:
        return finding.baseline
    return next((value for row in table.rows for name, value in row.inputs
                 if name == finding.vary), "")


def name_baseline(table: Table, finding: Finding) -> str:
    """Return what others are set beside, as a picture names it: a number with its axis."""
    baseline = find_baseline(table, finding)
    return f"{finding.vary.rpartition('.')[2]} {baseline}" if baseline[:1].isdigit() else baseline


def list_effects(table: Table, finding: Finding) -> tuple[Effect, ...]:
    """Return the effect of every value on every figure, where rows allow to tell it."""
    baseline = find_baseline(table, finding)
    groups = group_rows((row for row in table.predicted
                         if not finding.cells or row.cell != "assumed"), finding.vary)
    figures = finding.figures + ((EDP,) if finding.kind == "clock" else ())
    found = []
    values = dict.fromkeys(value for group in groups for value in group)
    for value in values:
        if value == baseline:
            continue
        for figure in figures:
            if ratios := _list_pairs(groups, value, baseline, figure):
                found.append(Effect(
                    value=value, figure=figure, ratios=tuple(ratio for ratio, _, _ in ratios),
                    low=median(low for _, low, _ in ratios),
                    high=median(high for _, _, high in ratios)))
    return tuple(found)


def _list_pairs(groups: Iterable[Mapping[str, Row]], value: str, baseline: str, figure: str,
                by: str = "ratio") -> list[tuple[float, float, float]]:
    """Return ratios to the baseline or differences, ascending, and the ends of their intervals."""
    pairs = [(group[value], group[baseline]) for group in groups if {value, baseline} <= {*group}]
    if by == "difference":
        return sorted((now[1] - then[1], now[0] - then[2], now[2] - then[0]) for one in pairs
                      for now, then in [[row.bounds_of(figure) for row in one]] if now and then)
    return sorted((ratio, *_bound_ratio(*one, figure, ratio)) for one in pairs
                  if (ratio := _ratio(*one, figure)) is not None)


def list_cells(table: Table, finding: Finding, value: str) -> Counter[str]:
    """Return how well the code behind a value's rows is known, and of how many rows."""
    return Counter(row.cell for row in table.predicted
                   if row.cell and row.asked(finding.vary) == value)


def _tell_cells(finding: Finding, table: Table) -> list[str]:
    """Return how well the code of each value is known: what is assumed is compared with nothing."""
    lines = []
    for value in dict.fromkeys(row.asked(finding.vary) for row in table.predicted):
        cells = list_cells(table, finding, value)
        text = ", ".join(f"{cells[cell]} {cell}" for cell in CELLS if cells[cell])
        lines.append(f"cells of {value}: {text}"
                     + " (compared with nothing)" * bool(cells["assumed"]))
    return lines


def group_rows(rows: Iterable[Row], vary: str) -> list[dict[str, Row]]:
    """Return rows by the value of an axis, those that differ in nothing else together."""
    found: dict[NamedTexts, dict[str, Row]] = {}
    for row in rows:
        inputs = dict(row.inputs)
        value = inputs.pop(vary, "")
        found.setdefault(tuple(inputs.items()), {})[value] = row
    return [*found.values()]


def tell(study: Study, table: Table) -> tuple[str, ...]:
    """Return what a study found, line by line: its finding, its limits, what is infeasible."""
    return (f"{len(table.predicted)} of {len(table.rows)} configurations predicted",
            *tell_finding(study, table), *_tell_budgets(study, table), *_tell_failures(table))


def tell_finding(study: Study, table: Table) -> list[str]:
    """Return what its finding compares; without one, what is on the front."""
    if study.finding is None:
        return _tell_front(table)
    lines = _tell_effects(study.finding, table)
    lines += _tell_cells(study.finding, table) if study.finding.cells else []
    lines += _tell_levels(study.finding, table)
    if study.finding.within and study.finding.variables:
        lines += _tell_least(study.finding, table)
    lines += [_tell_claim(claim, study.finding, table) for claim in study.finding.claims]
    if "overhead_us" in study.finding.figures:
        lines += _tell_overhead(study.finding, table)
    if study.finding.kind == "clock":
        lines += _tell_clocks(study.finding, table)
    if study.finding.kind == "return":
        lines += _tell_return(study.finding, table)
    return lines


FEW_ACCEPTED = 0.5
"""Share of configurations within an active budget below which it leaves little to choose from."""


def _tell_budgets(study: Study, table: Table) -> list[str]:
    """Return how many rows are above each soft limit, and within the active budget."""
    lines, several = [], {budget.quantity for budget in study.budgets}
    for budget in (*study.budgets, *(
            Budget(SOFT[name], name, limit) for name, limit in study.limits.list_limits()
            if name not in several)):
        known = list_known(table.rows, budget.quantity)
        above = sum(value > budget.limit for value in known)
        what = f"{name_figure(budget.quantity)} above {write_level(budget.quantity, budget.limit)}"
        lines.append(f"{budget.column}: {above} of {len(known)} known, {what}")
    active = study.hard.max_parameter_bytes
    if active is not None:
        within = sum(is_accepted(study, row) for row in table.rows)
        few = within < FEW_ACCEPTED * len(table.rows)
        lines.append(f"accepted: {within} of {len(table.rows)} predicted within hard limits, "
                     f"{write_level('parameter_bytes', active)} of parameters among them"
                     + "; less than half, so it may be stricter than need be" * few)
    return lines


def list_precisions(study: Study, table: Table) -> list[JsonObject]:
    """Return a row for each precision of weights: means of its rows, and the share accepted.

    Accepted is what is predicted and no hard limit rejects, without such what meets the soft ones.
    Columns are those of the edge-hardware constraint framework; what no row knows is None.
    """
    found = []
    for precision in dict.fromkeys(row.precision for row in table.rows if row.precision):
        rows = [row for row in table.rows if row.precision == precision]

        def average(name: str, factor: float, rows: list[Row] = rows) -> float | None:
            known = list_known(rows, name)
            return fmean(known) * factor if known else None

        found.append({
            "precision": precision, "accuracy_mean": average("accuracy", 1),
            "latency_ms_mean": average("time_us", 1e-3),
            "memory_mb_mean": average("parameter_bytes", 1 / MEGABYTE),
            "energy_proxy_j_mean": average("energy_uj", 1e-6),
            "accepted_ratio": fmean(is_accepted(study, row) for row in rows)
            if study.hard else fmean(row.met for row in rows) if study.limits else None})
    return found


def _tell_effects(finding: Finding, table: Table) -> list[str]:
    effects, baseline = list_effects(table, finding), find_baseline(table, finding)
    apart = ", if rows share no error" * (not any(row.draw for row in table.rows))
    lines = []
    for value in dict.fromkeys(effect.value for effect in effects):
        own = [effect for effect in effects if effect.value == value]
        pairs = list(dict.fromkeys(len(effect.ratios) for effect in own))
        each = [f"{one.words} in {len(one.ratios)}" for one in own] if pairs[1:] else [
            one.words for one in own]
        held = ", ".join(f"{name_figure(one.figure)} x{_times(one.low)} to x{_times(one.high)}"
                         for one in own if one.low < one.high)
        lines.append(f"{value} beside {baseline}: {', '.join(each)}"
                     f"; {max(pairs)} pair{'s' * (max(pairs) != 1)}"
                     + f"; 90 % of the median pair{apart}: {held}" * bool(held))
    return lines or [f"nothing to set beside {baseline or 'a baseline'}: no pair of rows differs "
                     f"in {finding.vary} alone"]


def _tell_levels(finding: Finding, table: Table) -> list[str]:
    """Return what caches and memories are asked with each value of the axis."""
    lines = []
    for figure in finding.variables:
        sentences = [f"{value} {_spread(known, partial(write_level, figure))}" for value, known in
                     list_levels(finding, table.predicted, figure).items()]
        lines.append(f"{name_figure(figure)}: " + ("; ".join(sentences) if sentences else
                     "not known of any row: " + (
                         "it is of cold rows (temperatures: [cold]) on boards whose wake-up and "
                         "set-up are known" if figure == COLD_START else
                         "nothing here looks up a cache or counts it")))
    return lines


def list_levels(finding: Finding, rows: Iterable[Row], figure: str) -> dict[str, list[float]]:
    """Return what rows know of a figure, ascending, by value of the axis that is compared."""
    found = list_by_key((row.asked(finding.vary), level) for row in rows
                        if (level := figure_of(row, figure)) is not None)
    return {value: sorted(known) for value, known in found.items()}


def split_within(finding: Finding, rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return rows by value of the axis a finding looks within; of none all together."""
    return list_by_key((row.asked(finding.within), row) for row in rows)


def _tell_least(finding: Finding, table: Table) -> list[str]:
    """Return which value has least of a figure, for each value of the axis looked within."""
    figure, lines = finding.variables[0], []
    for within, rows in split_within(finding, table.predicted).items():
        least, alike = Counter[str](), 0
        for group in group_rows(rows, finding.vary):
            known = _known(group, figure)
            alike += len(known) > 1 and len({*known.values()}) == 1
            if len({*known.values()}) > 1:
                least[min(known, key=lambda value,
                          known=known: known[value])] += 1  # type: ignore[misc]
        lines.append(f"{finding.within} {within}: least {name_figure(figure)} "
                     + (_count_places(least) if least else "nowhere")
                     + f"; the same at all in {alike}" * bool(alike))
    return lines


def _count_places(least: Counter[str]) -> str:
    text = ", ".join(f"at {value} in {count}" for value, count in least.most_common())
    return f"{text} of {least.total()}"


def _tell_claim(claim: Claim, finding: Finding, table: Table) -> str:
    """Return in how many pairs a hypothesis holds, by predictions and by whole intervals."""
    baseline, by = find_baseline(table, finding), claim.by == "difference"
    write: Callable[[float], str] = partial(write_level, claim.figure) if by else (
        lambda ratio: f"x{_times(ratio)}")
    head = (f"hypothesis: {claim.value} {'above' if by else 'beside'} {baseline}, "
            f"{name_figure(claim.figure)} {'by ' * by}at most {write(claim.at_most)}: ")
    found = _list_pairs(group_rows(table.predicted, finding.vary), claim.value, baseline,
                        claim.figure, by=claim.by)
    if not found:
        return head + "cannot be tested: no pair of rows knows it"
    met, surely = (sum(one[end] <= claim.at_most for one in found) for end in (0, 2))
    middle, low, high = (write(median(one[end] for one in found)) for end in range(3))
    return f"{head}holds in {met} of {len(found)} pairs, median {middle}" + (
        f"; in {surely} by the whole interval, whose median is {low} to {high}" * (low != high))


def _bound_ratio(row: Row, base: Row, figure: str, ratio: float) -> Ends:
    """Return the ends of a ratio: errors of time that both share cancel, others are independent.

    Of energies and powers what is theirs beside the time's: of an end, the root of the difference
    of squares. Where nothing says what is shared nothing cancels, which is the cautious side.
    """
    if figure not in UNCERTAIN or not ratio:
        return ratio, ratio
    own, shared = _reach(row, base, figure), relate_times(base, row)
    if shared is not None and figure != "error":
        middle = math.log((row.time_us or 0.0) / (base.time_us or 1.0))
        own = np.sqrt(np.maximum(own**2 - _reach(row, base, "time_us")**2, 0.0)
                      + (np.log([shared.low, shared.high]) - middle)**2)
    low, high = ratio * np.exp(own * [-1, 1])
    return float(low), float(high)


def _reach(row: Row, base: Row, figure: str) -> Floats:
    """Return how far the logarithm of a ratio reaches down and up if its errors are independent."""
    now, then = (np.diff(np.log(one.bounds_of(figure) or np.ones(3))) for one in (row, base))
    reach: Floats = np.hypot(now, then[::-1])
    return reach


def _tell_overhead(finding: Finding, table: Table) -> list[str]:
    """Return which share of the time calls take, by value of the axis."""
    shares = list_by_key(
        (row.asked(finding.vary), row.overhead_us / row.time_us)
        for row in table.predicted if row.overhead_us is not None and row.time_us)
    return [f"calls of kernels take {_spread(own, '{:.2%}'.format)} of the time with {value}"
            for value, own in shares.items()]


def _tell_clocks(finding: Finding, table: Table) -> list[str]:
    """Return where energy and energy-delay product are least, and what goes with it."""
    groups = [group for group in group_rows(table.predicted, finding.vary) if len(group) > 1]
    lines = []
    for figure in ("energy_uj", EDP):
        least = Counter(min(known, key=lambda value: known[value]) for group in groups
                        if (known := _known(group, figure)))
        lines.append(f"{name_figure(figure)} is least {_count_places(least)}")
    by_voltage: dict[bool, list[float]] = {True: [], False: []}
    waits = []
    for group in groups:
        rows = sorted(group.values(), key=lambda row: row.clock_hz or 0.0)
        slow, fast = rows[0], rows[-1]
        energy = _ratio(slow, fast, "energy_uj")
        if energy is not None:
            by_voltage[slow.voltage_scale != fast.voltage_scale].append(energy)
        if slow.clock_hz and fast.clock_hz and slow.time_us and fast.time_us:
            waits.append(slow.time_us * slow.clock_hz / (fast.time_us * fast.clock_hz))
    for lower, ratios in by_voltage.items():
        if ratios:
            how = "allows a lower voltage scale" if lower else "leaves the voltage scale as it is"
            lines.append(f"where the slowest clock {how}, its energy is x{_spread(ratios)} of the "
                         f"fastest's; {len(ratios)} pairs")
    if waits:
        lines.append(f"cycles at the slowest clock are x{_spread(waits)} of those at the fastest: "
                     "memories are waited for in fewer cycles there")
    return lines


def _tell_return(finding: Finding, table: Table) -> list[str]:
    """Return the best change of each class of effort."""
    effects = list_effects(table, finding)
    lines = []
    for effort in dict.fromkeys(finding.efforts.values()):
        for figure in finding.figures[:2]:
            own = [one for one in effects if one.figure == figure
                   and finding.efforts.get(one.value) == effort]
            best = min(own, key=lambda one: one.median, default=None)
            if best is not None and best.median < 1 - LITTLE:
                lines.append(f"most for a {effort}: {best.value}, {best.words}")
            elif best is not None:
                lines.append(f"no {effort} of these saves {name_figure(figure)} in the median")
    return lines


def _tell_front(table: Table) -> list[str]:
    front = [row for row in table.rows if row.front in ("certain", "front")]
    lines = [f"{len(front)} on the front over {', '.join(map(name_figure, table.objectives))}"]
    for quantity in table.objectives:
        best = find_row(front, quantity)
        if best is not None:
            text = ", ".join(f"{name} {value}" for name, value in best.inputs)
            lines.append(f"least {name_figure(quantity)}: {text}")
    return lines


def _tell_failures(table: Table) -> list[str]:
    kinds = Counter(row.failure for row in table.failed)
    reasons: Mapping[str, Counter[str]] = {
        kind: Counter(row.reason for row in table.failed if row.failure == kind) for kind in kinds}
    return [f"{count} infeasible ({kind}): {reasons[kind].most_common(1)[0][0]}"
            + (f" ({len(reasons[kind]) - 1} other reasons)" if len(reasons[kind]) > 1 else "")
            for kind, count in kinds.most_common()]


def _known(group: Mapping[str, Row], figure: str) -> dict[str, float]:
    found = {value: figure_of(row, figure) for value, row in group.items()}
    return {value: number for value, number in found.items() if number is not None}


def _ratio(row: Row, base: Row, figure: str) -> float | None:
    first, second = figure_of(row, figure), figure_of(base, figure)
    return None if first is None or not second else first / second


def _times(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}"


def _spread(values: Sequence[float], write: Callable[[float], str] = _times) -> str:
    """Return the median and how far rows lie apart, which is no interval."""
    low, middle, high = (write(one) for one in (min(values), median(values), max(values)))
    return middle + f" ({low} to {high} between rows)" * (low != high)
