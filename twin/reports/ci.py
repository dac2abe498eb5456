"""Differences for continuous integration: JUnit XML, and Bencher's metric format.

References
----------
JUnit: testsuites > testsuite > testcase > failure, as Jenkins and GitLab read it.
Bencher Metric Format, bencher.dev/docs/reference/bencher-metric-format: benchmark -> measure ->
value, lower_value, upper_value; its built-in measure `latency` is in nanoseconds.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from twin.attribution.compatibility import NOTE
from twin.attribution.difference import Difference, Row
from twin.attribution.side import Side
from twin.documents import dump_document
from twin.reports.beside import say_reason
from twin.reports.export import write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twin.pricing.prediction import Prediction
    from twin.pricing.requirement import Requirement

MEASURES = {"time": "latency", "cycles": "cycles", "instructions": "instructions",
            "energy": "energy"}
"""Slug of each quantity: nanoseconds, cycles, instructions, nanojoules."""


def write_junit(difference: Difference, limit: float, *, with_parts: bool = False) -> bytes:
    """Return JUnit XML: a test per figure, failed where it grew beyond the limit.

    Parameters
    ----------
    limit
        Largest relative increase.
    with_parts
        Also a test per part.
    """
    after = difference.second
    cases = [("total", row) for row in difference.totals]
    cases += [(after.part, row) for row in difference.main.parts] if with_parts else []
    return _write_suite(f"twin diff {after.model} {after.board}", [
        (f"{after.model}.{after.board}.{what}", row.label, _Failure(
            kind="increase", message=describe_increase(row, limit),
            text="\n".join(_reasons(difference, row)) or "no cause is known")
         if row.exceeds(limit) else None) for what, row in cases])


def write_check_junit(prediction: Prediction, requirements: Sequence[Requirement], *,
                      sure: bool) -> bytes:
    """Return JUnit XML of what was checked: a test per requirement, failed where it is not met.

    Parameters
    ----------
    prediction
        What was held to them.
    requirements
        Its memories, and the limits that were asked.
    sure
        Whether the whole interval has to meet them.
    """
    name = f"{prediction.graph.name}.{prediction.board.name}"
    return _write_suite(f"twin check {name}", [
        (name, one.name, None if (one.surely_met if sure else one.met) else _Failure(
            kind="limit", message=f"{one.name}: {one.predicted} {one.unit}, limit {one.limit} "
                                  f"{one.unit}: {one.verdict}")) for one in requirements])


@frozen
class _Failure:
    """Why a test failed."""

    kind: str
    message: str
    text: str | None = None


def _write_suite(name: str, cases: Sequence[tuple[str, str, _Failure | None]]) -> bytes:
    """Return JUnit XML of one suite: class, name and failure of each test."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", {
        "name": name, "tests": str(len(cases)),
        "failures": str(sum(failure is not None for *_, failure in cases)), "errors": "0",
        "skipped": "0"})
    for kind, label, failure in cases:
        case = ElementTree.SubElement(suite, "testcase", {"classname": kind, "name": label})
        if failure is not None:
            ElementTree.SubElement(case, "failure", {
                "type": failure.kind, "message": failure.message}).text = failure.text
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def describe_increase(row: Row, limit: float) -> str:
    """Say in one line how a figure grew."""
    grown = "from nothing" if row.increase is None else f"{100 * row.increase:+.2f} %"
    return (f"{row.label}: {row.first:,} -> {row.second:,} {row.unit} ({grown}; at most "
            f"{100 * limit:+g} %)")


def _reasons(difference: Difference, row: Row) -> list[str]:
    moves = [f"{line.label}: {line.gap:+,} {unit}" for unit, lines in (
        (difference.main.unit, difference.main.total.moved), ("events", difference.counters))
        for line in lines][:8]
    notes = [str(one) for one in difference.findings if one.level == NOTE]
    return [*([reason] if (reason := say_reason(row)) else moves), *notes]


def to_bencher(side: Side) -> JsonObject:
    """Return a side in Bencher's metric format, one benchmark per model, board and runtime."""
    measures: JsonObject = {}
    for quantity, slug in MEASURES.items():
        if quantity not in side.whole.amounts:
            continue
        value = float(side.whole.amounts[quantity])
        metric = {"value": value}
        if quantity == "time" and side.interval_us is not None:
            metric |= {"lower_value": 1e3 * side.interval_us[0],
                       "upper_value": 1e3 * side.interval_us[1]}
        elif not side.predicted and quantity in ("time", "cycles"):
            metric["upper_value"] = value * (1 + side.spread)
        measures[slug] = metric
    measures |= {name.replace("_bytes", "-size"): {"value": float(size)}
                 for name, size in side.sizes.items()}
    return {f"{side.model}/{side.board}/{side.runtime}": measures}


def write_junit_file(difference: Difference, path: str | Path, limit: float | None, *,
                     with_parts: bool = False) -> Path:
    """Write JUnit XML, as of `write_junit`; without a limit no test fails."""
    return write_file(path, write_junit(difference, math.inf if limit is None else limit,
                                        with_parts=with_parts))


def write_bencher(difference: Difference, path: str | Path) -> Path:
    """Write the second side in Bencher's metric format."""
    return write_file(path, dump_document(to_bencher(difference.second)).encode())


def judge_limit(difference: Difference, limit: float | None, *,
                with_parts: bool) -> tuple[list[str], bool]:
    """Say what grew beyond a limit.

    Parameters
    ----------
    limit
        Largest relative increase.

    Returns
    -------
    tuple of (list of str, bool)
        What to warn of, and whether anything did.
    """
    if limit is None:
        return [], False
    spread = max(difference.first.spread, difference.second.spread)
    doubt = [f"runs scatter by {100 * spread:.1f} % (p95 / p50), more than the limit: a change of "
             "that size may be noise"] if spread > limit else []
    exceeding = difference.exceeding(limit, with_parts=with_parts)
    return [*doubt, *(describe_increase(row, limit) for row in exceeding)], bool(exceeding)
