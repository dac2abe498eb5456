"""What was read of a library in programs: its kernels, and how far their coefficients carry."""

from __future__ import annotations

from typing import Any

from twin.reports.columns import Column, number
from twin.reports.tables.parts import (
    Console,
    Content,
    Table,
    natural_width,
    new_pairs,
    spaced,
    tabulate,
)

NARROW = 20
"""Characters of a function's name where the terminal is narrow."""


def learnt_report(runtime: Any, console: Console) -> Content:
    """Return what a runtime's file has of programs.

    Parameters
    ----------
    console
        Its width decides how long names may be.
    """
    learnt = runtime.learnt
    assert learnt is not None
    pairs = [("runtime", runtime.identity), ("code of", f"{learnt.core}, {learnt.isa}"),
             *(("counted by running ELF" if not place else "", source)
               for place, source in enumerate(learnt.sources))]
    tables = list_tables(learnt, 200)
    if natural_width(tables[0]) > console.width:
        tables = list_tables(learnt, NARROW)
    return spaced([new_pairs(pairs), *tables])


def list_tables(learnt: Any, longest: int) -> list[Table]:
    """Return the kernels, and of several networks each layer beside what the others teach of it.

    Parameters
    ----------
    longest
        Characters of a function's name.
    """
    return [kernels_table(learnt, longest), *([checked_table(learnt)] if learnt.checked else [])]


def checked_table(learnt: Any) -> Table:
    """Return one row per layer: its instructions, and what programs of other networks teach of it.

    Parameters
    ----------
    learnt
        Of two networks or more.
    """
    return tabulate((
        Column("network"), number("layer", "index", "{}"), Column("operator", "op"),
        number("instructions", "instructions", "{:,}"),
        number("by the others", "predicted", "{:,.0f}"), number("error", "error", "{:+.1%}"),
        Column("", lambda one: "never seen" if one.predicted is None else
               "other kernel" if one.stands_in else "")), learnt.checked)


def kernels_table(learnt: Any, longest: int) -> Table:
    """Return one row per kernel.

    Parameters
    ----------
    longest
        Characters of a function's name.
    """
    return tabulate((
        Column("operator", "op"), Column("function", lambda one: one.name if len(
            one.name) <= longest else f"{one.name[:longest - 1]}…"),
        number("layers", "layers", "{}"), number("shapes", "distinct", "{}"),
        number("instructions", lambda one: _per_work(learnt, one), "{}"),
        number("error", "residual", "{:.1%}"), Column("weights again", _describe_turns)),
        learnt.kernels, drops=("weights again", "layers"))


def _per_work(learnt: Any, kernel: Any) -> str:
    """Return instructions for each product, or each output where there are none."""
    terms = [one["terms"] for one in learnt.observed["layers"]
             if one["op"] == kernel.op and one["features"] in kernel.seen]
    unit = "MAC" if terms and all("mac" in one for one in terms) else "output"
    work = sum(one.get(unit.lower(), 0.0) for one in terms)
    count = sum(kernel.instructions(one) for one in terms)
    return f"{count / work:.3g} a {unit}" if work else ""


def _describe_turns(kernel: Any) -> str:
    weights = kernel.operand("weights")
    if weights is None:
        return ""
    if kernel.along == "channels" or all(name == "call" for name, _ in kernel.turns):
        return "once"
    return "each " + ", ".join(f"{name} x {often:.3g}" for name, often in kernel.turns)
