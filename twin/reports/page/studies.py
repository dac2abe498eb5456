"""The page of a study or a sweep: what it asked, what it found, what is best, every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import PurePath
from typing import Any

from hwmodels.files import LARGEST_YAML_BYTES, read_regular_text
from hwmodels.quantities import list_by_key, significant
from twin.reports.columns import Cell, Column, number
from twin.reports.page.changes import judge_ratio
from twin.reports.page.charts import plot_chart, plot_grid
from twin.reports.page.parts import (
    Answer,
    Notes,
    Page,
    Pairs,
    Plot,
    Section,
    Table,
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
    meets_cell,
    row_details,
    say_best_mark,
    say_lead,
)
from twin.reports.rivals import Rival, choose_objectives, name_rivals, write_figure
from twin.reports.study_charts import chart_effects, chart_levels, chart_parallel, grid_cells
from twin.reports.tables.studies import head_placement
from twin.reports.tables.study_sentences import (
    describe_limits,
    rank_rows,
    say_idle,
    say_others,
    say_prices,
    say_rounding,
)
from twin.studies.axes import label
from twin.studies.results import Table as Points
from twin.studies.rows import CELLS
from twin.studies.study.definition import Finding
from twin.studies.study.figures import name_figure
from twin.studies.study.findings import Effect, find_baseline, list_effects, tell
from twin.studies.study.session import Session
from twin.studies.sweep import MARKS, name_network, network_of

MOST_ROWS = 1000
"""Of the table."""

FRONTS = {"certain": "surely", "front": "yes", "possible": "perhaps"}
"""Words of the marks of a front."""

MOST_NETWORKS = 4
"""Those with a card, a sentence and bars of their own; of more the table has a row each."""


def describe_study(session: Session, command: str = "") -> Page:
    """Return the page of a finished study.

    Parameters
    ----------
    session
        Of its folder.

    Raises
    ------
    StudyError
        Where it is not finished.
    """
    study, table = session.study, session.load_results()
    sentences = tell(study, table)
    found: list[Any] = [Notes(sentences)]
    if study.finding is not None:
        effects = list_effects(table, study.finding)
        if effects:
            found += [_draw_effects(effects, study.finding, table),
                      list_effect_rows(effects, study.finding, table)]
        levels = chart_levels(study.finding, table)
        found += [plot_chart(levels, height_px=360)] if levels is not None else []
    found += [Notes(study.notes)] if study.notes else []
    head = session.head
    pairs = [("study", f"{study.name}, sha-256 of inputs below"),
             *((f"input {PurePath(name).name}", str(digest))
               for name, digest in head["inputs"].items()),
             ("twin", str(head["twin"])), ("python", str(head.get("python", ""))),
             *((name, str(version)) for name, version in dict(head.get("packages", {})).items())]
    commands = [" ".join(map(str, one)) for one in head["commands"]]
    found_out = make_section("finding", "What it found", *found)
    file = read_regular_text(session.folder / "study.yaml", LARGEST_YAML_BYTES)
    sources = make_section(
        "provenance", "Sources", Pairs(tuple(pairs)),
        Notes((*commands, *filter(None, [command])), kind="code"),
        Notes((file,), kind="code"), folded=True)
    return _describe(table, title=study.question or study.name,
                     subtitle=f"study {study.name} · {len(table.rows)} configurations",
                     sentence=sentences[1] + "." if len(sentences) > 1 else sentences[0],
                     findings=(found_out, *_describe_method(session, table)), sources=sources)


def _describe_method(session: Session, table: Points) -> tuple[Section, ...]:
    """Return how a study was made, on what, how far it reaches, and what makes it reproducible."""
    study, head = session.study, session.head
    axes = [(axis.name, ", ".join(map(label, axis.values)) or "a range of values")
            for axis in study.space.axes if axis.name not in ("model", "board")]
    cases = [(f"case {name}", ", ".join(f"{path}={value}" for path, value in changes.items())
              or "as it is") for name, changes in study.cases.items()]
    method = [("networks", ", ".join(dict.fromkeys(row.network for row in table.rows))),
              *axes, *cases, ("caches", ", ".join(study.temperatures)),
              ("drawn", "every combination" if study.space.sample is None and not study.search
               else f"{study.space.sample or study.search}")]
    rows = {row.board: row for row in table.predicted}
    boards = make_table("boards", "Boards", (
        Column("board"), Column("energy", lambda row: f"of the {row.boundary}"
                                if row.energy_uj is not None else "not known"),
        Column("price", lambda row: row.price_of or "not known"),
        Column("prices of events", "calibration")), rows.values())
    known = Counter(row.cell for row in table.predicted)
    basis = Counter(row.basis or "none: stated prices" for row in table.predicted)
    limits = [
        "Costs are predicted; none was measured, on a board or in an emulator.",
        "Code behind the rows: " + ", ".join(f"{known[cell]} {cell} ({CELLS[cell]})"
                                             for cell in CELLS if known[cell]) + ".",
        "Intervals rest on: " + ", ".join(f"{name} ({count} rows)"
                                          for name, count in basis.most_common()) + ".",
        f"{len(table.failed)} of {len(table.rows)} configurations are infeasible, each a row with "
        "its reason.",
        "Accuracy is measured on data of the user's." if any(
            row.accuracy is not None for row in table.rows) else "Accuracy was not asked for."]
    facts = [("inputs kept with their hashes", bool(head["inputs"])),
            ("version of the twin and a hash of its sources", bool(head["twin"])),
            ("versions of Python and of packages", bool(head.get("packages"))),
            ("commands as typed", bool(head["commands"])),
            ("every row with its inputs, in results.parquet", session.is_finished),
            ("rows of each task by content address, in parts/", (session.folder / "parts").is_dir())
            ]
    check = tuple(f"[{'x' if done else ' '}] {what}" for what, done in facts)
    return (make_section("method", "Methods", Pairs(tuple(method))),
            make_section("boards", "Boards", boards),
            make_section("limits", "Limits", Notes(tuple(limits))),
            make_section("checklist", "Checklist of reproducibility", Notes(check)))


def describe_table(table: Points, command: str = "") -> Page:
    """Return the page of a sweep: the best first, then all of it."""
    models = dict.fromkeys(row.network for row in table.rows)
    boards = dict.fromkeys(row.board for row in table.rows)
    return _describe(
        table, title=f"{_few(models)} on {_few(boards)}",
        subtitle=f"sweep · {len(table.rows)} configurations",
        sentence=_say_networks(table), findings=(), sources=made_by(command))


def _few(names: Sequence[str] | dict[str, None]) -> str:
    listed = list(names)
    return ", ".join(listed) if len(listed) <= 3 else f"{len(listed)} of them"


def judge_table(table: Points) -> tuple[str, str]:
    """Return the answer in a few words, and its tone."""
    if not table.predicted:
        return "All of them are infeasible", "bad"
    if table.limits:
        met, failed = len(table.met), len(table.failed)
        return (f"{met} of {len(table.rows)} meet {describe_limits(table.limits)}"
                + say_others(table.predicted) + f"; {failed} infeasible" * bool(failed),
                "good" if met else "bad")
    front = sum(row.front in ("certain", "front") for row in table.rows)
    return f"{front} of {len(table.rows)} on the front", ""


def _describe(table: Points, *, title: str, subtitle: str, sentence: str,
              findings: Sequence[Section], sources: Section) -> Page:
    verdict, tone = judge_table(table)
    sections = [*findings, *_compare(table), _list_all(table), describe_failures(table), sources]
    return Page(title=title, subtitle=subtitle, verdict=verdict, tone=tone, sentence=sentence,
                answers=_answer_networks(table), sections=present(sections))


def _list_networks(table: Points) -> list[tuple[Rival, ...]]:
    """Return each network's rows, best first: those of different ones do not compete."""
    ranked = rank_rows(table)
    return [tuple(rivals) for rivals in list_by_key(
        (network_of(one.row), one) for one in (name_rivals(ranked) if ranked else ())).values()]


def _say_networks(table: Points) -> str:
    """Say who is best of the one network, or which is nearest of those that nothing meets.

    The best of each of several stand in cards.
    """
    networks = _list_networks(table)
    unmet = [rivals for rivals in networks if not list_winners(rivals)]
    if len(networks) < 2 and not unmet:
        return say_lead(networks[0] if networks else ())
    rows = [(f"{name_network(rivals[0].row)}: none" if len(networks) > 1 else "None")
            + f" meets the limits, nearest is {_say_nearest(rivals)}. " for rivals in unmet]
    more = len(networks) - MOST_NETWORKS
    return "".join(rows[:MOST_NETWORKS]) + (
        f"{more} more networks are in the table." if more > 0 else "")


def _answer_networks(table: Points) -> tuple[Answer, ...]:
    """Return the cards of the one network, or the first card of each of several."""
    networks = _list_networks(table)
    if len(networks) < 2:
        return list_answers(networks[0]) if networks else ()
    return tuple(replace(card, name=f"{name_network(rivals[0].row)}: {card.name}")
                 for rivals in networks[:MOST_NETWORKS] for card in list_answers(rivals)[:1])


def _list_best(networks: Sequence[tuple[Rival, ...]]) -> Section:
    """Return a row a network: the best of it by each figure."""
    def best(metric: str) -> Callable[[tuple[Rival, ...]], Cell]:
        def cell(rivals: tuple[Rival, ...]) -> Cell:
            for won, one in list_winners(rivals):
                if won.words == metric:
                    value = getattr(won.row, won.quantity)
                    return Cell(f"{write_figure(won.quantity, value)}: {one.label}",
                                value)
            return Cell("none")

        return cell

    metrics = dict.fromkeys(won.words for rivals in networks for won, _ in list_winners(rivals))
    nearest = None if all(map(list_winners, networks)) else Column(
        "where none meets, nearest",
        lambda rivals: "" if list_winners(rivals) else _say_nearest(rivals))
    return make_section(
        "networks", "The best of each network", make_table(
            "network-table", ("Least of each figure" + ", of those that meet the limits" * any(
                not one.row.met for rivals in networks for one in rivals)) if metrics else
            "None meets the limits", (
                Column("network", lambda rivals: name_network(rivals[0].row)),
                *(Column(metric, best(metric)) for metric in metrics), nearest),
            networks[:MOST_ROWS]),
        lead="Networks are not compared: a narrower one needs less of everything that is "
             "predicted, but how much accuracy it loses is not known.")


def _say_nearest(rivals: Sequence[Rival]) -> str:
    return f"{rivals[0].label} with {write_figure('time_us', rivals[0].row.time_us)}"


def _compare(table: Points) -> list[Section]:
    """Return the front, the best beside each other, and how axes and figures go together."""
    ranked = rank_rows(table)
    if not ranked:
        return []
    rivals = name_rivals(ranked)
    objectives = choose_objectives(ranked, table.objectives)
    plots: list[Plot] = []
    if objectives is not None:
        plots.append(draw_front(rivals, objectives, table.limits))
    parallel, grid = chart_parallel(table), grid_cells(table)
    wide = len(parallel.x.ticks)
    if wide > 2 and len(ranked) > 2:
        plots.append(plot_chart(parallel, height_px=420, least_px=105 * wide))
    plots += [] if grid is None else [plot_grid(grid)]
    networks = _list_networks(table)
    many = len(networks) > 1
    found = [_list_best(networks)] if many else []
    found.append(make_section("front", "What trades for what", *plots))
    for place, mine in enumerate(networks[:MOST_NETWORKS]):
        if len(mine) > 1:
            radar, mark = draw_radar(mine), f"-{place}" if place else ""
            found.append(make_section(
                f"best{mark}", "The best beside each other"
                + (f": {name_network(mine[0].row)}" if many else ""), *(
                    replace(plot, name=plot.name + mark) for plot in (
                        *draw_dashboard(mine, table.limits), radar) if plot is not None),
                lead="Those that meet the limits first, then by the first objective."))
    return found


def _draw_effects(effects: Sequence[Effect], finding: Finding, table: Points) -> Plot:
    chart = chart_effects(effects, finding, table)
    figures = len({effect.figure for effect in effects})
    return plot_chart(chart, height_px=110 + (16 + 18 * figures) * len(chart.y.ticks))


def _list_all(table: Points) -> Section | None:
    """Return the rows as a table, the best of all and the front marked."""
    ranked = rank_rows(table)
    if not ranked:
        return None
    rivals = name_rivals(ranked)
    shown = rivals[:MOST_ROWS]
    least = {network_of(mine[0].row): list_least(mine) for mine in _list_networks(table)}
    rows = [one.row for one in shown]
    sentences = [*say_idle(rows), *say_prices(rows), *say_rounding(rows), "front: " + "; ".join(
        f"{word}: {MARKS[mark]}" for mark, word in FRONTS.items())]
    if len(rivals) > len(shown):
        sentences.insert(0, f"{len(rivals) - len(shown)} more rows, all behind these, are in the "
                       "table of results")
    return make_section("rows", "Configurations", make_table(
        "row-table", "Best first" + " within each network" * (len(least) > 1)
        + f"; {say_best_mark(ranked)}", (
            Column("configuration", "label"),
            *head_figures(lambda row: least[network_of(row)], ranked),
            number("meets", meets_cell) if table.limits else None,
            Column("front", lambda one: FRONTS.get(one.row.front)),
            *head_placement(rows, "row.placement")), shown,
        details=lambda one: (*one.row.inputs, ("library", one.row.runtime),
                             *row_details(one.row))), *notes(*sentences))


def describe_failures(table: Points) -> Section | None:
    """Return infeasible rows, equal reasons together; None where there are none."""
    if not table.failed:
        return None
    reasons = Counter((row.failure, row.reason) for row in table.failed)
    return make_section("failed", "Infeasible", make_table(
        "failed-table", f"{len(table.failed)} of {len(table.rows)} configurations refused", (
            number("how many", itemgetter(1), "{}"), Column("kind", lambda one: one[0][0]),
            Column("why", lambda one: one[0][1])), reasons.most_common(MOST_ROWS)))


def list_effect_rows(effects: Sequence[Effect], finding: Finding, table: Points) -> Table:
    """Return each value's effect on each figure."""
    def times(value: float) -> str:
        return f"x{significant(value)}"

    return make_table("effect-table", f"{finding.vary} beside {find_baseline(table, finding)}", (
        Column(finding.vary, "value"), Column("figure", lambda effect: name_figure(effect.figure)),
        number("median", "median", times, kind="predicted",
               tone=lambda effect: judge_ratio(effect.median, 0.98)),
        number("least", lambda effect: effect.ratios[0], times),
        number("most", lambda effect: effect.ratios[-1], times),
        number("pairs", lambda effect: len(effect.ratios), "{}")), effects)
