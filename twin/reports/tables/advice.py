"""Advice as a report: what meets the limits, at what effort, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from calibration.fitting.intervals import Interval
from hwmodels.quantities import (
    NOT_KNOWN,
    format_energy,
    format_frequency,
    format_power,
    format_size,
    format_time,
    significant,
)
from twin.pricing.variables import USED
from twin.reports.columns import Column, number
from twin.reports.tables.limits import format_chance, say_meets
from twin.reports.tables.parts import Content, Group, Text, tabulate
from twin.reports.tables.study_sentences import (
    describe_limits,
    say_idle,
    say_lacking,
    say_life,
    say_unknown,
)
from twin.studies.advice import Advice, draws_too_much_asleep
from twin.studies.change import Change
from twin.studies.penalties import describe_miss
from twin.studies.rows import QUANTITIES, WORDS, Row, judge

SHOWN = 12
"""Changes shown."""


def advice_report(advice: Advice) -> Content:
    """Return the answer in a sentence, the changes as a table, and what they rest on."""
    parts: list[Content] = [Text(line) for line in summarise_advice(advice)]
    each: dict[object, Change] = {}
    for one in advice.ranked:
        each.setdefault((one.effort, *(getattr(one.row, name) for name in QUANTITIES[:4])), one)
    shown = [*each.values()][:SHOWN]
    if shown:
        parts += [Text(""), _change_table(shown)]
        if alike := len(advice.ranked) - len(each):
            parts.append(Text(f"{alike} more with the figures of one of these: --json lists all"))
        costs = (cost for one in shown for cost in one.costs.split("; ") if cost)
        notes = [*(["ratio of time: with its 90 % interval, from which shared errors cancel"]
                   if any(one.ratio for one in shown) else []), *say_idle([advice.before]),
                 *dict.fromkeys(f"costs: {cost}" for cost in costs),
                 f"the first rests on {shown[0].rests_on}"]
        parts += [Text(""), *(Text(note, "dim") for note in notes)]
    parts += [Text(line, "dim") for line in say_use(advice.before)]
    if advice.refused:
        parts.append(Text(f"{len(advice.refused)} infeasible changes: --json says why",
                          "dim"))
    return Group(*parts)


IDLE, BUSY = 0.1, 0.8
"""Shares of a memory's bandwidth, or of its bytes, below and above which it is worth a word."""


def say_use(row: Row) -> list[str]:
    """Say where memories are hardly used or nearly used up: bandwidth, and bytes of RAM."""
    used = {name.removeprefix(f"{USED}."): share for name, share in row.variables
            if name.startswith(f"{USED}.")}
    lines = [f"bandwidth: {name} at {share:.0%} of what it delivers, so the network is bound by "
             "memory there: narrower types, fewer activations or another place help"
             for name, share in used.items() if share > BUSY]
    if used and max(used.values()) < IDLE:
        lines.append(f"bandwidth: no memory above {max(used.values()):.1%} of what it delivers, so "
                     "the network is bound by the core or by latencies: a wider memory is no help")
    need, room = row.ram_bytes or 0, row.ram_room_bytes or 0
    if BUSY * room < need <= room:
        lines.append(f"RAM: {need / room:.0%} of {format_size(room)} taken before the program's "
                     "stack and data; 60 to 80 % leaves them room")
    return lines


def summarise_advice(advice: Advice) -> list[str]:
    """Say how it is, and what would do; the last line is the advice."""
    deployment, before = advice.deployment, advice.before
    if before.failure:
        return [say_best(advice)]
    clock = format_frequency(before.clock_hz)
    broken = [WORDS[name] for name in before.violations if name not in before.unknown]
    lines = [f"{deployment.graph.name} on {before.board}, {before.runtime}, {clock}: "
             f"{describe_figures(advice, None)}; limits {describe_limits(advice.limits)}: "
             + ("met" if before.met else "; ".join(filter(None, (
                 "not met: " * bool(broken) + ", ".join(broken),
                 say_unknown([before]) if before.unknown else ""))))
             + (f" (met with {format_chance(before.probability)})"
                if before.probability is not None else "")]
    return [*lines, say_best(advice)]


def say_best(advice: Advice, *, costs: bool = True) -> str:
    """Say the best change in one sentence, with what it costs besides."""
    if advice.best is not None:
        best = advice.best
        kind = "pair" if len(best.settings) > 1 else "change"
        meets = ("makes it fit" if not advice.limits else "meets them more surely" if advice.met
                 else "meets them" if best.row.sure else "may meet them")
        surest = format_chance(max(one.row.probability or 0.0 for one in advice.ranked
                                   if one.row.met))
        doubt = f"nothing that was tried meets them with 90% ({surest} at most); " * (
            not advice.met and not best.row.sure)
        return (f"{doubt}cheapest {kind} that {meets}: "
                f"{best.words} ({best.effort}): {describe_figures(advice, best)}"
                f"{_chance(best)}{f'; {best.costs}' if best.costs and costs else ''}"
                + ("" if (less := advice.cheaper) is None else
                   f"; at less effort {less.words} ({less.effort}): "
                   f"{describe_figures(advice, less)}{_chance(less)}"))
    if advice.met:
        return "no change is needed" if advice.before.sure else (
            f"met with {format_chance(advice.before.probability)}; no change that was tried makes "
            "it surer")
    before = advice.before
    if before.failure and not advice.ranked:
        return "nothing that was tried makes it fit"
    unknown = "" if not before.unknown else say_unknown([before]) + (
        f": {say_lacking(before)}" if "mean_mw" in before.unknown else "")
    if before.verdict == "may" and not advice.changes:
        return f"no change is tried: {unknown}"
    if draws_too_much_asleep(before, advice.limits):
        return (f"no change is tried: asleep alone the board draws {format_power(before.asleep_mw)}"
                f" of the {format_power(advice.limits.max_mean_mw)} on average")
    if advice.nearest is None:
        return "no change that was tried comes notably nearer to them"
    near = advice.nearest
    row = judge(near.row, advice.limits)
    # What no change makes known stands first, and decides; the others may be met.
    still = "which meets the others" if row.verdict == "may" else (
        f"still {describe_miss(row, advice.limits, 0.0)}")
    if row.verdict == "may" and row.energy_uj is not None and advice.limits.max_mean_mw:
        current_ua = advice.surest_sleep_ua
        still += ("; all are met with 90% at no sleep current" if current_ua is None else
                  f"; all are met with 90% where it sleeps at {current_ua:g} uA at most (--sleep "
                  f"{row.board}={current_ua:g}uA)")
    first = f"{unknown}, which decides first" if unknown else (
        "not met whatever it sleeps at" if row.sleep == NOT_KNOWN else
        "nothing that was tried meets them")
    return (f"{first}; nearest: {near.words} "
            f"({near.effort}): {describe_figures(advice, near)}, {still}")


def say_suggestion(change: Change) -> str:
    """Say what a bottleneck suggests, and what it is predicted to save."""
    costs = f"; {change.costs}" if change.costs else ""
    return f"{change.words} ({change.effort}): predicted to take {say_share(change)}{costs}"


def say_share(change: Change) -> str:
    """Return the share of the time before that a change is predicted to leave."""
    moved = change.time_ratio_interval
    ends = "" if moved is None else f" ({moved.write('{:.2f}'.format)})"
    return f"{change.time_ratio:.2f}{ends} of the time"


def describe_figures(advice: Advice, change: Change | None) -> str:
    """List the figures limits are of, and the time and energy always."""
    row = advice.before if change is None else change.row
    figures = [format_time(row.time_us)]
    if row.energy_uj is not None or advice.limits.max_energy_uj is not None:
        figures.append(f"energy {format_energy(row.energy_uj)}" if row.energy_uj is None
                    else format_energy(row.energy_uj))
    limited = dict(advice.limits.list_limits())
    figures += [f"{format_size(getattr(row, f'{name}_bytes'))} of {text}"
                for name, text in (("ram", "RAM"), ("flash", "flash"))
                if advice.before.failure or f"{name}_bytes" in limited]
    if row.mean_mw is not None:
        figures.append(say_life(row))
    return ", ".join(figures)


def _chance(change: Change) -> str:
    chance = change.row.probability
    return f", met with {format_chance(chance)}" if chance else ""


def _change_table(changes: Sequence[Change]) -> Content:
    table = tabulate((
        Column("change", lambda one: "\n+ ".join(map("=".join, one.settings)), no_wrap=True),
        Column("effort"), number("time", "row.time_us", format_time),
        number("ratio", lambda one: _ratio(one.time_ratio, one.ratio), "{}"),
        number("energy", "row.energy_uj", lambda energy_uj: "?" if energy_uj is None else
               format_energy(energy_uj)),
        number("ratio", lambda one: _ratio(one.energy_ratio, None), "{}"),
        *(number(name, f"row.{quantity}", format_size) for name, quantity in (
            ("RAM", "ram_bytes"), ("flash", "flash_bytes")) if any(
                quantity in one.row.violations for one in changes)),
        number("mean power", "row.mean_mw", format_power) if any(
            one.row.sleep for one in changes) else None,
        number("days", "row.life_days", lambda days: significant(days) if days else "?")
        if any(one.row.life_days for one in changes) else None,
        number("meets", lambda one: say_meets(one.row), "{}")),
        changes, gap=1, drops=("effort", "flash", "mean power"),
        style=lambda one: "" if one.row.met else "dim")
    table.caption = "ratio = before / after" + "; meets: of what is known" * (
        changes[0].row.sleep == NOT_KNOWN)
    return table


def _ratio(ratio: float | None, interval: Interval | None) -> str:
    """Write before / after, as all tables do; a change knows after / before."""
    if not ratio:
        return ""
    about = "" if interval is None else f" {interval.low:.2f}-{interval.high:.2f}"
    return f"{1 / ratio:.2f}{about}"
