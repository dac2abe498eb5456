"""The page of variants beside each other: boards, libraries, or stages of optimisation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hwmodels.errors import TwinError
from hwmodels.frozen import frozen, record
from hwmodels.quantities import drop_none, format_energy, format_time, list_by_key
from twin.attribution.accounts import compare_sides
from twin.attribution.difference import Account, Line
from twin.attribution.predicted import side_of_prediction
from twin.pricing.inference import say_above_idle
from twin.pricing.ledger import cause_energies_uj, cause_times_us, explain_time
from twin.pricing.prediction import LayerPrediction, Prediction
from twin.reports.beside import write_amount
from twin.reports.columns import Cell, Column, number
from twin.reports.page.changes import judge_ratio, write_change
from twin.reports.page.parts import (
    Answer,
    Page,
    Section,
    describe_warnings,
    make_section,
    make_table,
    notes,
    present,
)
from twin.reports.page.provenance import made_by
from twin.reports.page.rival_plots import draw_dashboard, draw_front, draw_radar
from twin.reports.page.rivals import (
    head_figures,
    list_answers,
    list_least,
    list_winners,
    row_details,
    say_best_mark,
    say_lead,
)
from twin.reports.page.variant_plots import draw_bills, draw_moves, draw_timeline
from twin.reports.rivals import BEST, Rival, choose_objectives, write_figure
from twin.reports.tables.study_sentences import say_idle
from twin.studies.limits import Limits
from twin.studies.rows import WORDS
from twin.studies.rows import Row as Point

MOST_NAMED = 3
"""Boards a title names."""

MOST_COLUMNS = 8
"""Variants with a column each in the table of layers."""


@frozen
class Variant:
    """A deployment among others.

    Parameters
    ----------
    label
        What it is called: its parts are joined by " · ".
    row
        Its figures; a failed one says why.
    """

    label: str
    row: Point


@frozen
class Made(Variant):
    """One that was predicted, with its bill."""

    prediction: Prediction


def describe_variants(variants: Sequence[Variant], *, chain: bool = False,
                      limits: Limits | None = None, command: str = "") -> Page:
    """Return the page of several variants of one deployment.

    Parameters
    ----------
    variants
        The first is what others are set beside.
    chain
        Whether each is a stage made of the one before.
    limits
        They were held to.
    """
    made = [one for one in variants if isinstance(one, Made)]
    rivals = [Rival(label=one.label, row=one.row) for one in made]
    names = dict.fromkeys(one.prediction.graph.name for one in made)
    boards = dict.fromkeys(one.row.board for one in variants)
    places = ", ".join(boards) if len(boards) <= MOST_NAMED else f"{len(boards)} boards"
    title = f"{', '.join(names) or variants[0].row.model} on {places}"
    if not made:
        return Page(title=title, subtitle="nothing was predicted", verdict="None of them can be",
                    tone="bad", sentence=f"{variants[0].label}: {variants[0].row.reason}",
                    sections=(_list_variants(variants, rivals), _describe_sources(made, command)))
    chain = chain and len(made) > 1
    verdict, tone = _judge(rivals, chain=chain)
    sections = [
        make_section("stages", "Stage by stage", draw_timeline(rivals))
        if chain else None,
        _list_variants(variants, rivals), _compare(rivals, limits), _describe_bills(made),
        *_describe_moves(made, chain=chain), _list_layers(made), _warn(made),
        _describe_sources(made, command)]
    kind = "stages of optimisation" if chain else "variants beside each other"
    return Page(
        title=title, subtitle=f"{len(variants)} {kind}", verdict=verdict, tone=tone,
        sentence=_say_chain(rivals) if chain else say_lead(rivals),
        answers=_answer_chain(rivals) if chain else list_answers(rivals),
        sections=present(sections))


def _judge(rivals: Sequence[Rival], *, chain: bool) -> tuple[str, str]:
    if chain:
        first, last = rivals[0].row.time_us or 1.0, rivals[-1].row.time_us or 1.0
        return (f"{write_change(last / first)} time in {len(rivals) - 1} "
                f"stage{'s' * (len(rivals) > 2)}", "good" if last < first else "bad")
    winners = list_winners(rivals)
    if len(rivals) == 1:
        return f"Only {rivals[0].label} can be", ""
    if not winners:
        return "None meets the limits", "bad"
    won, fastest = winners[0]
    both = [one for one, _ in winners if one.quantity == "energy_uj"]
    if len(both) == 1 and both[0].row is won.row:
        return (f"{fastest.label} is fastest and lowest energy{won.among or both[0].among}", "good")
    return f"{fastest.label} is fastest{won.among}", "good"


def _say_chain(rivals: Sequence[Rival]) -> str:
    """Say from where to where it went, and which stage did most."""
    first, last = rivals[0].row, rivals[-1].row
    caption = f"From {format_time(first.time_us)} to {format_time(last.time_us)}"
    if first.energy_uj is not None and last.energy_uj is not None:
        caption += f", from {format_energy(first.energy_uj)} to {format_energy(last.energy_uj)}"
    steps = [(one.label, (one.row.time_us or 1.0) / (before.row.time_us or 1.0))
             for before, one in itertools.pairwise(rivals)]
    label, ratio = min(steps, key=lambda one: one[1])
    most = f" Most is done by {label.removeprefix('+ ')}: {write_change(ratio)} time."
    return f"{caption}.{most if ratio < 1 else ''}"


def _answer_chain(rivals: Sequence[Rival]) -> tuple[Answer, ...]:
    """Return each figure at the end, and what it was at the start."""
    first, last = rivals[0].row, rivals[-1].row
    found = []
    for quantity in ("time_us", "energy_uj", "ram_bytes", "flash_bytes"):
        write = partial(write_figure, quantity)
        before, after = getattr(first, quantity), getattr(last, quantity)
        interval = last.interval_of(quantity)
        ratio = "" if before is None or after is None or not before else (
            f"{write(before)} before, {write_change(after / before)}")
        if interval is not None:
            ratio += f"; {interval.describe(write)}"
        found.append(Answer(f"{WORDS[quantity]} at last", write(after), range=ratio))
    return tuple(found)


def _list_variants(variants: Sequence[Variant], rivals: Sequence[Rival]) -> Section:
    """Return a row for each, the best of each figure marked; those that cannot be with why."""
    least, rows = list_least(rivals), [one.row for one in rivals]

    def known(place: int, column: Column) -> Column:
        return replace(column, take=lambda one: column.cell(one) if isinstance(one, Made)
                       else Cell("" if place else "cannot be", tone="" if place else "bad"))

    return make_section("variants", "Beside each other", make_table(
        "variant-table", say_best_mark(rows), (Column("variant", "label"), *(
            known(place, column) for place, column in enumerate(head_figures(
                lambda row: least, rows)))),
        variants, details=lambda one: (("why not", one.row.reason),) if not isinstance(one, Made)
        else (("where it goes", explain_time(one.prediction)), ("board", one.row.board),
              ("library", one.row.runtime), *row_details(one.row))),
        *notes(*say_idle(rows)))


def _compare(rivals: Sequence[Rival], limits: Limits | None) -> Section | None:
    if len(rivals) < 2:
        return None
    objectives, radar = choose_objectives([one.row for one in rivals]), draw_radar(rivals)
    return make_section(
        "dashboard", "At a glance", *draw_dashboard(rivals, limits), radar,
        None if objectives is None else
        draw_front(rivals, objectives, limits, half=radar is not None))


def _describe_bills(made: Sequence[Made]) -> Section:
    plots = [draw_bills("time", [
        (one.label, cause_times_us(one.prediction, one.prediction.bill)) for one in made])]
    if all(one.prediction.energy_uj is not None for one in made):
        plots.append(draw_bills("energy", [(one.label, _energies_with_idle(one)) for one in made]))
    added = len(plots) > 1 and any(one.row.idle_mw is not None for one in made)
    return make_section(
        "bills", "Where it goes", *plots, lead="The bill of each, itemised by the same causes." + (
            " What an idle board draws meanwhile is under idle." if added else ""))


def _energies_with_idle(one: Made) -> dict[str, float]:
    """Return the energy of each cause, with what the idle board draws where that counts apart."""
    found = cause_energies_uj(one.prediction.bill)
    if one.row.idle_mw is not None and one.row.time_us is not None:
        found["idle"] = found.get("idle", 0.0) + one.row.idle_mw * one.row.time_us * 1e-3
    return found


def write_gap(line: Line) -> str:
    """Write how much more time a cause takes afterwards."""
    return write_amount(line.gap or 0, "ns", "+")


@record
class _Move:
    """A step from one variant to another, and what moved."""

    before: Made
    after: Made
    account: Account

    @property
    def ratio(self) -> float:
        """Time after over before."""
        total = self.account.total
        return total.second / total.first if total.first else 1.0

    @property
    def lines(self) -> list[Line]:
        """The causes that moved, the largest first."""
        return [line for line in self.account.total.moved if line.gap]

    def tell(self, place: int) -> str:
        """Say which cause moved most, or next."""
        return "" if place >= len(self.lines) else (
            f"{self.lines[place].label} {write_gap(self.lines[place])}")


MOVES = (Column("before", "before.label"), Column("after", "after.label"),
         number("time by", "ratio", write_change, kind="predicted",
                tone=lambda move: judge_ratio(move.ratio, 0.98)),
         Column("most", lambda move: move.tell(0)), Column("next", lambda move: move.tell(1)),
         Column("then", lambda move: move.tell(2)))


def _describe_moves(made: Sequence[Made], *, chain: bool) -> list[Section]:
    """Return the causes that moved: of each step of a chain, else from the first to each."""
    if len(made) < 2:
        return []
    moves = drop_none(_differ(made[place if chain else 0], one)
                      for place, one in enumerate(made[1:]))
    fastest = min(made[1:], key=lambda one: one.row.time_us or float("inf"))
    whole = _differ(made[0], made[-1] if chain else fastest)
    plots = [] if whole is None or not whole.account.total.moved else [
        draw_moves(whole.account, whole.before.label, whole.after.label)]
    return [make_section("moved", "What moved", *plots, make_table(
        "move-table", "Largest causes first", MOVES, moves, details=lambda move: (
            (line.label, write_gap(line)) for line in move.lines)),
        lead="Time after less time before, cause by cause; the causes sum to the whole of it.")
            ] if moves else []


def _differ(before: Made, after: Made) -> _Move | None:
    try:
        found = compare_sides(side_of_prediction(before.prediction),
                              side_of_prediction(after.prediction), anyway=True).account("time")
    except TwinError:
        return None
    return None if found is None else _Move(before, after, found)


def _list_layers(made: Sequence[Made]) -> Section | None:
    """Return the time of each layer in each variant."""
    shown = made[:MOST_COLUMNS]
    layers: dict[int, dict[str, LayerPrediction]] = {}
    for one in shown:
        for layer in one.prediction.layers:
            layers.setdefault(layer.index, {})[one.label] = layer

    def time_of(label: str) -> Callable[[Mapping[str, LayerPrediction]], Cell]:
        def cell(found: Mapping[str, LayerPrediction]) -> Cell:
            if label not in found:
                return Cell("")
            times = {name: layer.time_us for name, layer in found.items()}
            best = times[label] == min(times.values()) and len(
                {f"{time / 1e3:,.3f}" for time in times.values()}) > 1
            return Cell(f"{times[label] / 1e3:,.3f}{f' {BEST}' * best}", times[label],
                        tone="good" * best)

        return cell

    def first(name: str) -> Callable[[Mapping[str, LayerPrediction]], object]:
        return lambda found: getattr(next(iter(found.values())), name)

    return make_section(
        "layers", "Layers", make_table(
            "layer-table", f"Layers in the order they run; {BEST} takes least", (
                number("layer", first("index"), "{}"), Column("operator", first("op")),
                *(number(one.label, time_of(one.label), kind="predicted") for one in shown),
                Column("name", first("name"), tone="dim")),
            [layers[index] for index in sorted(layers)]),
        lead="Milliseconds of each layer.") if len(shown) > 1 else None


def _warn(made: Sequence[Made]) -> Section | None:
    reasons = list_by_key(
        (warning, one.label) for one in made for idle in [one.prediction.board.idle()]
        for warning in one.prediction.warnings if idle is None or warning != say_above_idle(idle))
    return describe_warnings(text if len(labels) == len(made) else f"{', '.join(labels)}: {text}"
                for text, labels in reasons.items())


def _describe_sources(made: Sequence[Made], command: str) -> Section:
    graphs = dict.fromkeys((one.prediction.graph.name, one.prediction.graph.sha256) for one in made)
    return made_by(command, *((f"model {name}", f"sha256 {digest}") for name, digest in graphs))
