"""Choosing hardware: boards and libraries ranked for a network, with a score of what is predicted.

    score = 100 - 70 (1 - P) - 10 (full(RAM) + full(flash) + width + more(energy) + more(price))

of what meets the limits, 50 at least, with P the probability that all are met (1 without limits),
full(u) = max(0, 2 u - 1) for the share u of a memory that is used, width the logarithm to base 4,
at most 1, of high over low of the time, and more that of energy or price over the least of what
meets the limits; of mean power (in place of energy with a duty) without that bound. Where only
figures that are not known decide it is 25 + 25 P of the known ones; what misses limits has 25 over
the product of its figures over their limits, what does not fit or cannot run 0.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from hwmodels.errors import TwinError
from hwmodels.frozen import frozen
from hwmodels.quantities import list_by_key
from twin.deployment.choice import DEFAULT, default_runtime
from twin.deployment.deployment import Deployment
from twin.errors import DoesNotFitError
from twin.network.rewrites.rewrite import EFFORTS
from twin.studies.advice import Advice, give_advice
from twin.studies.axes import EACH, OWN, Point, Space
from twin.studies.limits import Limits
from twin.studies.penalties import (
    BEST_MISS,
    NEAR,
    Penalty,
    describe_miss,
    draw_least,
    find_least,
    is_far,
    list_penalties,
)
from twin.studies.points import Deployer
from twin.studies.results import Table
from twin.studies.rows import VERDICTS, Row, judge
from twin.studies.sweep import Progress, make_table, map_boards, predict_chunks

MOST_DRAWN = 50
"""Of the best by a metric, those whose chances are weighed against each other."""

METRICS = (("fastest", "time_us"), ("least energy", "energy_uj"), ("least RAM", "ram_bytes"),
           ("cheapest", "price_usd"), ("lowest mean power", "mean_mw"))


@frozen
class Choice:
    """A network on a board, under the library that suits it best.

    Parameters
    ----------
    row
        Predicted, or the refusal where no library runs it there.
    penalties
        What its score lost.
    advice
        Of one that does not meet the limits: what would help.
    others
        Further libraries and settings that were tried there.
    setting
        The setting by which it meets the limits, and what it misses without; "" for none.
    """

    row: Row
    penalties: tuple[Penalty, ...]
    advice: Advice | None = None
    others: int = 0
    setting: str = ""

    @property
    def score(self) -> float:
        """Compatibility, 0 to 100."""
        least = BEST_MISS * 2 if self.row.met else 0.0
        return max(least, 100.0 - sum(one.points for one in self.penalties))

    @property
    def reason(self) -> str:
        """Why it is infeasible, or what it fails; "" where it meets the limits."""
        return self.row.reason or ", ".join(
            one.reason for one in self.penalties if not self.row.met and one.name == "limits")


@frozen
class Winner:
    """The best by a metric, and how probable it is that it really is.

    Parameters
    ----------
    metric, quantity
        As it is called, and the field of a row.
    row
        The best of those known.
    probability
        None: no rival, no intervals, or a rival that is not known may have less.
    unknown
        Boards that may have less: their figure is not known, or whether they meet the limits.
    less
        The row with least of all that have less and do not, or not surely, meet the limits.
    """

    metric: str
    quantity: str
    row: Row
    probability: float | None
    unknown: tuple[str, ...] = ()
    less: Row | None = None

    @property
    def among(self) -> str:
        """Among which it is the best, where others have, or may have, less; else ""."""
        return " of those that meet the limits" * (self.less is not None) or (
            " of those known" * bool(self.unknown))

    @property
    def words(self) -> str:
        """The metric, and among which it is the best."""
        return self.metric + self.among


@frozen
class Selection:
    """Boards ranked for networks.

    Parameters
    ----------
    choices
        One for every network and board, best first.
    table
        Everything that was predicted, with the front.
    by
        Quantities that ranked what meets the limits; empty: the score.
    """

    choices: tuple[Choice, ...]
    table: Table
    by: tuple[str, ...] = ()

    @property
    def limits(self) -> Limits:
        """What was asked."""
        return self.table.limits

    @property
    def feasible(self) -> tuple[Choice, ...]:
        """Choices that meet the limits by their prediction."""
        return tuple(one for one in self.choices if one.row.met)

    @property
    def infeasible(self) -> tuple[Choice, ...]:
        """Choices that do not, with reason and what would help."""
        return tuple(one for one in self.choices if not one.row.met)

    @property
    def networks(self) -> dict[str, list[Choice]]:
        """Choices by network, best first."""
        return list_by_key((one.row.model, one) for one in self.choices)

    def list_winners(self, model: str) -> tuple[Winner, ...]:
        """Return the best choice of a network by each metric, of those that meet the limits."""
        return find_winners([one.row for one in self.networks[model]])

    def find_less(self, won: Row, name: str) -> Row | None:
        """Return the row of a library that is not chosen with least of a quantity, if any has less.

        Less by a hundredth; of rows that surely meet the limits where the best one does.
        """
        rows = (row for row in self.table.rows if row.model == won.model
                and row.runtime != won.runtime and row.sure >= won.sure
                and row.competes(name, won.compared_as(name)))
        best = min(rows, key=lambda row: float(getattr(row, name)), default=won)
        return best if (getattr(best, name) or 0) < 0.99 * (getattr(won, name) or 0) else None


def find_winners(rows: Sequence[Row]) -> tuple[Winner, ...]:
    """Return the best row by each metric, of those that surely meet the limits if any does."""
    everything = rows
    if any(row.sure for row in rows):
        rows = [row for row in rows if row.sure or not row.met]
    winners = []
    for metric, name, kind in list_metrics(rows):
        known = sorted((row for row in rows if row.competes(name, kind)),
                       key=lambda row: (float(getattr(row, name)), row.time_us or math.inf))
        best = getattr(known[0], name)
        unknown = tuple(dict.fromkeys(
            row.board for row in rows if row.verdict != "no" and row.compared_as(name) == kind
            and not row.competes(name, kind)
            and ((bounds := row.bounds_of(name)) is None or bounds[0] < best)))
        chances = None if unknown else draw_least(known[:MOST_DRAWN], name)
        less = min((row for row in everything if not row.failure
                    and row.compared_as(name) == kind and (value := getattr(row, name)) is not None
                    and value < best), key=attrgetter(name), default=None)
        winners.append(Winner(
            metric=metric, quantity=name, row=known[0], unknown=unknown, less=less,
            probability=None if chances is None else float(chances[0])))
    return tuple(winners)


def list_metrics(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Return metrics known of what meets limits, with their quantity and what it compares as.

    Energies of an inference of chips at their rail and of boards at their input do not compare:
    each has a least of its own, which says so where any row is of the other. One price of all that
    meet them is no metric.
    """
    found = []
    for metric, name in METRICS:
        met = [getattr(row, name) for row in rows if row.met]
        if name == "price_usd" and len(met) > 1 and len({*met}) == 1:
            continue
        kinds = {row.compared_as(name) for row in rows if getattr(row, name) is not None}
        found += [(metric + (f" ({kind.removeprefix(name).strip()})" if len(kinds) > 1 else ""),
                   name, kind) for kind in sorted(kinds, reverse=True)
                  if any(row.competes(name, kind) for row in rows)]
    return found


def select_hardware(space: Space, limits: Limits, deployer: Deployer | None = None, *,
                    objectives: Sequence[str] = ("time_us", "energy_uj", "price_usd"),
                    by: Sequence[str] = (), advise: bool = True,
                    on_progress: Progress | None = None) -> Selection:
    """Rank boards and libraries for networks.

    Parameters
    ----------
    space
        Networks, boards, and what may be chosen on each.
    deployer
        Prices, temperature.
    objectives
        Of the front of the table.
    by
        Quantities that rank what meets the limits, the first first; empty: the score.
    advise
        Whether settings and rebuilds are tried on boards that do not meet the limits.

    Notes
    -----
    Of a board's libraries its default is chosen, under a setting that costs nothing if it needs
    one, unless only another surely meets the limits: figures are those of `predict`. Of libraries
    that are named none is a default: the fastest is chosen. A board is
    advised on by the process that predicted it, which has what its kernels do in memory.
    """
    deployer, points = deployer or Deployer(), space.list_points()
    named = any(axis.name == "runtime" and not {EACH, DEFAULT} & {*axis.values}
                for axis in space.axes)
    rows: list[Row] = []
    advices: dict[int, Advice | None] = {}
    settings: dict[int, str] = {}

    def predict_board(part: Sequence[Point]) -> tuple[list[Row], int, Advice | None, str]:
        made = [judge(row, limits) for row in predict_chunks(part, deployer)]
        default = _name_first(made, part[0], deployer, named=named)
        ranked = sorted(range(len(made)), key=lambda number: _order(made[number], default))
        usual = [number for number in ranked[1:] if made[number].runtime == default
                 and made[ranked[0]].runtime != default]
        for best in (*usual[:1], ranked[0]):
            advice = _advise(part[best], made[best], limits, deployer) if advise else None
            changed, setting = _settle(made[best], advice, limits)
            if changed.sure:
                break
        made[best] = changed
        return made, best, advice, setting

    for made, best, advice, setting in map_boards(predict_board, points):
        advices[len(rows) + best], settings[len(rows) + best] = advice, setting
        rows += made
        if on_progress is not None:
            on_progress(len(rows), len(points), sum(bool(row.failure) for row in rows))
    table = make_table(rows, limits=limits, objectives=objectives,
                       axes=tuple(axis.name for axis in space.axes))
    chosen = _choose(table.rows, points, deployer, named=named)
    least = find_least([table.rows[number] for number in chosen])
    choices = [Choice(row=row, penalties=list_penalties(row, limits, least), others=others,
                      setting=settings.get(best, ""),
                      advice=None if settings.get(best) else advices.get(best))
               for best, others in chosen.items() for row in (table.rows[best],)]
    order = {model: place for place, model in enumerate(dict.fromkeys(
        row.model for row in table.rows))}
    choices.sort(key=lambda one: (
        order[one.row.model], _order(one.row)[:3], _rank(one.row, by) if one.row.met else (),
        -round(one.score, 1), _order(one.row)))
    return Selection(choices=tuple(choices), table=table, by=tuple(by))


def _choose(rows: Sequence[Row], points: Sequence[Point], deployer: Deployer, *,
            named: bool) -> dict[int, int]:
    """Return the row chosen of each network on each board, and how many others there are."""
    groups = list_by_key(((row.model, row.board), number) for number, row in enumerate(rows))
    chosen = {}
    for numbers in groups.values():
        default = _name_first([rows[number] for number in numbers], points[numbers[0]], deployer,
                              named=named)
        chosen[min(numbers, key=lambda number: _order(rows[number], default))] = len(numbers) - 1
    return chosen


def _rank(row: Row, by: Sequence[str]) -> tuple[tuple[bool, float], ...]:
    """Order a row by quantities; not known, and energy of a whole board, after the others."""
    return tuple((value is None or (name == "energy_uj" and row.boundary == "board"), value or 0.0)
                 for name in by for value in (getattr(row, name),))


def _advise(point: Point, row: Row, limits: Limits, deployer: Deployer) -> Advice | None:
    """Return what would help the best of a board; None where nothing has to, or can."""
    if row.verdict != "no" or "price_usd" in row.violations or is_far(row, limits):
        return None
    try:
        deployment: object = deployer.deploy(point)
    except TwinError as error:
        deployment = getattr(error, "draft", None)  # As it would be if memories had room.
    with contextlib.suppress(DoesNotFitError):  # No pool of an accelerator holds a buffer of it.
        if isinstance(deployment, Deployment) and max(
                deployment.ram_bytes / deployment.ram_room_bytes,
                deployment.flash_bytes / deployment.flash_room_bytes) < NEAR:
            return give_advice(deployment, limits, deployer, best_only=True)
    return None


def _settle(row: Row, advice: Advice | None, limits: Limits) -> tuple[Row, str]:
    """Return a row as a free setting has it that meets the limits, and that setting; "": none.

    The fastest placement that meets them, else a setting that surely does. What was asked for by
    `--set` or `--clock` stays.
    """
    asked = {name for name, value in row.inputs if value != OWN}
    free = [] if advice is None or row.met else [
        one for one in advice.ranked if one.row.met and one.effort == EFFORTS[0] and not any(
            path in asked or (path.startswith("clocks.") and "clock" in asked)
            for path, _ in one.settings)]
    placed = [one for one in free if all(path.startswith("placement.") for path, _ in one.settings)]
    best = min(placed, key=lambda one: one.row.time_us or math.inf, default=None) or next(
        (one for one in free if one.row.sure), None)
    if best is None:
        return row, ""
    settled = replace(best.row, model=row.model, board=row.board,
                      inputs=(*row.inputs, *best.settings))
    return settled, f"{best.words}; without it {describe_miss(row, limits, 0.0)}"


def _name_first(rows: Sequence[Row], point: Point, deployer: Deployer, *, named: bool) -> str:
    """Return the library that comes first: the board's default; of named ones the fastest."""
    if named:
        return min(rows, key=lambda row: row.time_us or math.inf).runtime
    try:
        return default_runtime(deployer.read_graph(point["model"]),
                               deployer.read_board(point["board"])).identity
    except TwinError:
        return ""  # its files are refused


def _order(row: Row, default: str = "") -> tuple[float, ...]:
    """Order rows: runs, meets limits or may, surely, by the default library; how surely, fast."""
    return (bool(row.failure), VERDICTS.index(row.verdict), not row.sure, row.runtime != default,
            -round(row.probability or 0.0, 2), row.time_us if row.time_us is not None else math.inf)
