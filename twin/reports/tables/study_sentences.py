"""What a table of rows says in sentences: the best, their limits, what is not known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hwmodels.quantities import (
    NOT_KNOWN,
    format_energy,
    format_frequency,
    format_power,
    format_size,
    format_time,
    list_first,
    significant,
)
from twin.pricing.calibrated import OWN_CURRENTS
from twin.pricing.grade import MEASURED_HERE
from twin.reports.tables.limits import format_chance, format_ends
from twin.studies.duty import IDLE, TYPED
from twin.studies.limits import Limits
from twin.studies.results import Table
from twin.studies.rows import NAMED, VERDICTS, WORDS, Row, find_least_mean
from twin.studies.selection import find_winners
from twin.studies.sweep import list_roundings, name_network, network_of

LISTED = 4
"""Most boards a note names."""


def rank_rows(table: Table) -> list[Row]:
    """Return predicted rows, best first within each network, networks in the order asked.

    Those that meet the limits, those that may, then by how sure that is in steps of a per cent,
    then by the first objective; what is not known last.
    """
    order = {network: place for place, network in enumerate(dict.fromkeys(
        map(network_of, table.rows)))}

    def key(row: Row) -> tuple[float, ...]:
        first, second = (value if (value := getattr(row, name)) is not None else float("inf")
                         for name in (*table.objectives, "time_us")[:2])
        return (order[network_of(row)], VERDICTS.index(row.verdict),
                -round(row.probability or 0.0, 2), first, second)

    return sorted(table.predicted, key=key)


def list_winners(table: Table) -> list[tuple[str, Row]]:
    """Return the best rows: of each of several networks, else by each figure."""
    ranked, networks = rank_rows(table), dict.fromkeys(map(network_of, table.predicted))
    if len(ranked) < 2:
        return []
    if len(networks) > 1:
        best = [next(row for row in ranked if network_of(row) == one) for one in networks]
        return [(f"{name_network(row)}, " + ("best" if row.met else "none meets; nearest"), row)
                for row in best] if table.limits else []
    likely = max(ranked, key=lambda row: row.met * min(round(row.probability or 0.0, 3), 0.999))
    winners = [("most probable", likely)] if likely.met and likely.probability else []
    return winners + [(won.words, won.row) for won in find_winners(table.predicted)
                      if won.quantity != "ram_bytes"]


def say_others(rows: Sequence[Row]) -> str:
    """Say how many predicted rows may meet the limits, what would decide that, how many do not."""
    may = [row for row in rows if row.verdict == "may"]
    no = sum(row.verdict == "no" for row in rows)
    within = sum(row.meets.endswith("within") for row in rows)
    return (f"; {len(may)} may ({say_unknown(may)})" * bool(may)
            + f"; {no} do{'es' * (no == 1)} not" * bool(no)
            + f" ({within} may be within)" * bool(within))


def say_unknown(rows: Sequence[Row]) -> str:
    """Say which limited figures of rows are not known: what would decide whether they meet."""
    names = {name for row in rows for name in row.unknown}
    return " and ".join(text for name, text in WORDS.items() if name in names) + " not known"


def describe_row(row: Row, *, changes: bool = True) -> str:
    """Say what a row is, what it costs and what prices are of other boards, on one line.

    Parameters
    ----------
    changes
        Whether changes of its network are said.
    """
    clock = f", {format_frequency(row.clock_hz)} {row.voltage_scale}".rstrip()
    figures = (
        format_time(row.time_us), "" if row.energy_uj is None else format_energy(
            row.energy_uj) + " with idle" * (row.idle_mw is not None),
        "" if row.mean_mw is None else say_life(row),
        "" if row.probability is None else f"meets with {format_chance(row.probability)}",
        row.grade * (row.grade != MEASURED_HERE))
    more = "".join(f", {name} {value}" for name, value in row.inputs
                   if name not in NAMED and (changes or not name.startswith("network.")))
    return f"{row.board}, {row.runtime}{clock}{more}: {', '.join(filter(None, figures))}"


def describe_limits(limits: Limits) -> str:
    """List limits as people write them: "100 ms, 5 mJ, 256 KiB of RAM"."""
    texts = {"time_us": format_time(limits.max_time_us), "energy_uj": format_energy(
        limits.max_energy_uj), "ram_bytes": f"{format_size(limits.max_ram_bytes)} of RAM",
        "flash_bytes": f"{format_size(limits.max_flash_bytes)} of flash",
        "price_usd": f"{limits.max_price_usd or 0:g} USD", "mean_mw": "mean power of "
        + format_power(limits.max_mean_mw) + ("" if limits.min_life_days is None else
                                              f" ({limits.min_life_days:g} days)"),
        "parameter_bytes": f"{format_size(limits.max_parameter_bytes)} of parameters",
        "error": f"accuracy of {1 - (limits.max_error or 0):.4g}"}
    if limits.every_us is not None:
        period = format_time(limits.every_us)
        texts["time_us"] = (f"a period of {period}" if limits.max_time_us is None else
                           f"{texts['time_us']} every {period}")
    return ", ".join(texts[name] for name, _ in limits.list_limits())


def say_life(row: Row) -> str:
    """Say the battery life of a row's duty with its interval, or its mean power."""
    if row.life_days is None:
        return "at least " * (row.sleep == NOT_KNOWN) + f"{format_power(row.mean_mw)} on average"
    days, ends = significant(row.life_days), format_ends(row.life, 1)
    return f"{days} day{'s' * (days != '1')}" + f" ({ends})" * bool(ends)


def say_duty(row: Row, every_us: float | None = None) -> str:
    """Say what a duty takes, at least that of inferences so often, and in which state it sleeps."""
    row = row if every_us is None else find_least_mean(row, every_us)
    if row.mean_mw is None:
        return f"mean power not known: {say_lacking(row)}"
    if row.sleep == NOT_KNOWN:
        return (f"{say_life(row)} whatever it sleeps at (--sleep {row.board}=CURRENT states it); "
                f"energy of the {row.boundary}")
    life = "" if row.life_days is None else f", {say_life(row)} {say_cell(row)}"
    a_day = format_energy((row.energy_day_j or 0.0) * 1e6)
    parts = "" if row.wake_mw is None or row.asleep_mw is None else (
        f" ({100 - 100 * (row.wake_mw + row.asleep_mw) / row.mean_mw:.0f} % inference, "
        f"{100 * row.wake_mw / row.mean_mw:.0f} % wake-up, "
        f"{100 * row.asleep_mw / row.mean_mw:.0f} % {IDLE if row.sleep == IDLE else 'sleep'})")
    return (f"{format_power(row.mean_mw)} on average{parts}, {a_day} a day{life}; asleep "
            f"{say_sleep(row)}; energy of the {row.boundary}")


def say_lacking(row: Row) -> str:
    """Say why the mean power of a row is not known, and what states it."""
    if row.energy_uj is None:
        return "its energy is not; --currents states a core's, a board file an accelerator's"
    return (f"its sleep current is not; --sleep {row.board}=CURRENT states yours"
            if row.sleep == NOT_KNOWN else "wake-up and inference outlast the period")


def say_sleep(row: Row) -> str:
    """Say in which state a board sleeps, or that it only idles."""
    if row.sleep == IDLE:
        return "never, only the idle power of the whole board is known"
    return row.sleep if row.sleep.startswith((TYPED, "not known")) else f"in {row.sleep}"


def say_cell(row: Row) -> str:
    """Say what a battery life was computed from; the row has one."""
    cell_wh = (row.life_days or 0.0) * 24 * (row.mean_mw or 0.0) / 1e3
    return (f"from {significant(cell_wh)} Wh, all usable, without regulator losses or "
            "self-discharge" + f"; {row.life_basis}" * bool(row.life_basis))


def say_idle(rows: Sequence[Row]) -> list[str]:
    """Say in which state boards sleep, which energies hold an idle board, what memories share."""
    split = group_by((f"{what} in {place}", row.board) for row in rows for what, place in (
        ("weights", row.weights), ("arena", row.arena)) if "+" in place)
    sleeps = group_by((row.sleep and say_sleep(row), row.board) for row in rows)
    boards = {board: sorted({row.idle_mw for row in rows if row.board == board
                             and row.idle_mw is not None})
              for board in dict.fromkeys(row.board for row in rows if row.boundary == "board")}
    own = dict.fromkeys(row.board for row in rows if row.currents)
    fed = [row for row in rows if row.life_days is not None and row.mean_mw is not None]
    bases = group_by((basis, row.board) for row in fed for basis in row.life_basis.split("; "))
    taken = say_groups(bases, unless_all=True)
    return [*([f"days: {say_cell(replace(fed[0], life_basis=taken))}"] if fed else []),
        *([f"energy of {list_first(own, LISTED)}: {OWN_CURRENTS}"] if own else ()),
        *([f"split over memories, which parts is assumed: {say_groups(split)}"] if split else ()),
        *([f"sleep: {say_groups(sleeps)}" + "; --sleep BOARD=CURRENT states yours" * (
            NOT_KNOWN in sleeps)] if sleeps else ()), *(
        f"energy of {board} " + ("is of the board" if not drawn else "includes " + " to ".join(
            f"{mw:,.0f}" for mw in dict.fromkeys((drawn[0], drawn[-1])))
            + " mW of the idle board, as limits do (at other clocks than its file's the interval "
            "is wider: how much of it follows them is not known)")
        + " and is drawn at the board's input: do not compare it with a chip's at its rail"
        for board, drawn in boards.items())]


def say_prices(rows: Sequence[Row]) -> list[str]:
    """Say what the prices of rows are of, and how well they are known."""
    reasons = say_groups(group_by((row.price_of, row.board) for row in rows), unless_all=True)
    return [f"USD: {reasons}; kits are not compared (kit_usd of -o, --json); --price BOARD=USD "
            "states yours"] if reasons else []


def say_rounding(rows: Sequence[Row]) -> list[str]:
    """Say how values of axes are rounded, so that two of them may be one network."""
    return [f"{name}: {rounds}; values that round alike are one network"
            for name, rounds in list_roundings(rows).items()]


def say_groups(groups: Mapping[str, Collection[str]], *, unless_all: bool = False) -> str:
    """List heads of groups with their first members, unless one has all there are."""
    count = len(set().union(*groups.values())) if unless_all else 0
    return "; ".join(head + f" ({list_first(members, LISTED)})" * (len(members) != count)
                     for head, members in groups.items())


def group_by(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, None]]:
    """Return the second of pairs by the first, each once; pairs without a first are dropped."""
    groups: dict[str, dict[str, None]] = {}
    for head, member in pairs:
        if head:
            groups.setdefault(head, {})[member] = None
    return groups
