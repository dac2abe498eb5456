"""The accuracy report: tables for people, aggregated wherever rows are sealed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.accuracy.instructions import Check
from benchmarks.accuracy.judgement import (
    Case,
    Errors,
    Judgement,
    energy_errors,
    latency_errors,
    memory_errors,
)
from hwmodels.quantities import list_by_key

Judge = Callable[[Iterable[Case]], Errors]


def make_summary(judgement: Judgement) -> str:
    """Return what a reader wants first: the twin at stated prices.

    Parameters
    ----------
    judgement : Judgement
        Predictions of all rows.

    Returns
    -------
    str
        Markdown; ends with a newline.
    """
    cases = judgement.cases
    sealed = any(case.row.use == "test" for case in cases)
    parts = [
        "Absolute error of one warm inference against published results, in % of the published "
        "value: n rows, median, worst, at stated prices: no price is fitted to a published row"
        + ("; `test` rows are shown as aggregates" if sealed else "")
        + f". {len(cases)} rows can be judged.",
        write_table(("at stated prices", *_error_columns(_uses(cases))), [
            [name, *_error_cells(cases, judge, _uses(cases))]
            for name, judge in (("latency", latency_errors), ("energy", energy_errors))]),
    ]
    return "\n\n".join(parts) + "\n"


def make_details(judgement: Judgement, checks: Mapping[str, Sequence[Check]]) -> str:
    """Return the tables by board, runtime and network, and what was not judged.

    Parameters
    ----------
    judgement : Judgement
        Predictions of all rows.
    checks : mapping of str to sequence of Check
        Instruction counts, by where they were counted.

    Returns
    -------
    str
        Markdown; ends with a newline.
    """
    cases = judgement.cases
    parts = [
        *(part for title, judge in (
            ("Latency of the twin at stated prices by board and runtime", latency_errors),
            ("Energy of the twin at stated prices by board and runtime", energy_errors),
            ("Working memory of the twin by board and runtime, against what the tool reports",
             memory_errors)) for part in (f"**{title}**", _group_table(
                 cases, judge, ("board", "runtime"), _board_and_runtime))),
        "**Latency of the twin at stated prices by network**",
        _group_table(cases, latency_errors, ("network",),
                     lambda case: (_family(str(case.row.model)),)),
        _left_out(judgement),
        *(part for title, counted in checks.items() for part in (
            f"**Instructions of the lowered kernels: predicted / {title}**",
            _check_table(counted))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _board_and_runtime(case: Case) -> tuple[str, str]:
    return str(case.row.board), str(case.row.runtime)


def _uses(cases: Iterable[Case]) -> tuple[str, ...]:
    found = {case.row.use for case in cases}
    return tuple(use for use in ("fit", "test") if use in found)


def _error_columns(uses: Sequence[str]) -> tuple[str, ...]:
    return tuple(column for use in uses for column in (f"n {use}", "median", "worst"))


def _group_table(cases: Sequence[Case], judge: Judge, names: Sequence[str],
                 group: Callable[[Case], tuple[str, ...]]) -> str:
    groups = list_by_key((group(case), case) for case in cases)
    uses = _uses(cases)
    rows = [[*key, *_error_cells(groups[key], judge, uses)] for key in sorted(groups)
            if judge(groups[key]).count]
    return write_table((*names, *_error_columns(uses)), rows)


def _error_cells(cases: Iterable[Case], judge: Judge, uses: Sequence[str]) -> list[str]:
    cells = []
    for use in uses:
        errors = judge([case for case in cases if case.row.use == use])
        cells += [str(errors.count), _percent(errors.median_pct), _percent(errors.worst_pct)]
    return cells


def _family(model: str) -> str:
    """Name of a layer list without its hash and data type."""
    return model.partition("__")[0].removesuffix("_int8")


def _left_out(judgement: Judgement) -> str:
    reasons = Counter(f"{case.row.board}: {case.comparison.reason}" for case in judgement.cases
                      if case.comparison.reason)
    stood_in = sum(case.comparison.stood_in for case in judgement.cases)
    lines = ["**Rows not predicted, rows not judged**", ""]
    lines += [f"- not predicted, {_rows(count)}: {reason}" for reason, count in reasons.items()]
    lines += [f"- not judged, {_rows(count)}: {reason}"
              for reason, count in judgement.left_out.items()]
    lines.append(f"- {_rows(stood_in)} above predicted with the nearest version of the runtime "
                 "(`stand_ins` in `calibration/datasets/names.yaml`)")
    return "\n".join(lines)


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def _check_table(checks: Sequence[Check]) -> str:
    rows: dict[str, dict[str, str]] = {}
    counters = list(dict.fromkeys(check.counter for check in checks))
    for check in checks:
        rows.setdefault(check.what, {})[check.counter] = f"{check.ratio:.2f}"
    return write_table(("layer", *counters), [
        [what, *(cells.get(counter, "-") for counter in counters)]
        for what, cells in rows.items()])


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
