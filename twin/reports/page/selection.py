"""The page of a choice of hardware: who wins, by what, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twin.reports.columns import Column, number
from twin.reports.page.parts import Notes, Page, Section, Table, make_section, make_table
from twin.reports.page.provenance import made_by
from twin.reports.page.rival_plots import draw_dashboard, draw_front, draw_radar
from twin.reports.page.rivals import (
    head_figures,
    list_answers,
    list_least,
    meets_cell,
    row_details,
    say_best_mark,
)
from twin.reports.rivals import Rival, choose_objectives, name_rivals
from twin.reports.tables.selection import explain_miss, list_notes, say_how_many, say_picks
from twin.reports.tables.studies import head_placement
from twin.studies.selection import Choice, Selection

SCORE = number("score", "score", "{:.0f}")


def describe_selection(selection: Selection, command: str = "") -> Page:
    """Return the page of boards ranked for networks, an answer and a part a network."""
    called = [mine[0].row.network for mine in selection.networks.values()]
    boards = len({one.row.board for one in selection.choices})
    verdicts, answers = [], []
    sections: list[Section] = []
    for place, mine in enumerate(selection.networks.values()):
        rivals = name_rivals([one.row for one in mine])
        head, mark = (f"{called[place]}: ", f"-{place}") if len(called) > 1 else ("", "")
        verdicts.append(head + say_how_many(mine, selection.limits))
        answers += [replace(one, name=head + one.name)
                    for one in list_answers(rivals, selection.find_less)]
        sections += _describe_network(selection, mine, rivals, head, mark)
    sections.append(make_section("notes", "How to read it", Notes(tuple(list_notes(selection)))))
    return Page(
        title=f"Hardware for {', '.join(called)}",
        subtitle=f"choice of {boards} boards · {len(selection.table.predicted)} configurations "
        "predicted", verdict=". ".join(verdicts),
        tone="good" if all(
            any(one.row.met for one in mine) for mine in selection.networks.values()) else "bad",
        sentence=". ".join(say_picks(selection)) + ".", answers=tuple(answers),
        sections=(*sections, made_by(command)))


def _describe_network(selection: Selection, mine: Sequence[Choice], rivals: Sequence[Rival],
                      head: str, mark: str) -> list[Section]:
    """Return ranking, comparison and refusals of one network."""
    runs = [(one, rival) for one, rival in zip(mine, rivals, strict=True) if not one.row.failure]
    sections = []
    if runs:
        ranked = [rival for _, rival in runs]
        front = choose_objectives([one.row for one in ranked], selection.table.objectives)
        radar = draw_radar([one for one in ranked if one.row.met] or ranked)
        plots = [radar, *draw_dashboard(ranked, selection.limits),
                 draw_front(ranked, front, selection.limits) if front else None]
        sections = [
            make_section(f"ranking{mark}", f"{head}Ranking", list_choices(runs, selection, mark)),
            make_section(f"beside{mark}", f"{head}Beside each other", *(
                replace(plot, name=plot.name + mark) for plot in plots if plot is not None))]
    missing = [one for one in mine if not one.row.met]
    if missing:
        sections.append(make_section(f"missing{mark}", f"{head}What does not meet the "
                                "limits, or may", make_table(f"missing-table{mark}",
                       "Why, and what would help where that was looked for", (
                           Column("board", "row.board"), SCORE, number("meets", meets_cell),
                           Column("why, and what would help", explain_miss)), missing)))
    return sections


def list_choices(runs: Sequence[tuple[Choice, Rival]], selection: Selection, mark: str) -> Table:
    """Return a row for each board that runs it, best first."""
    leading, rows = list_least([rival for _, rival in runs]), [one.row for one, _ in runs]
    return make_table(
        f"ranking-table{mark}", f"Best first; {say_best_mark(rows)}", (
            SCORE, Column("board", "row.board"), number("meets", meets_cell),
            *head_figures(lambda row: leading, rows), Column("library", "row.runtime", tone="dim"),
            number("MHz", "row.clock_hz", lambda hertz: f"{(hertz or 0) / 1e6:g}"),
            *head_placement(rows, "row.placement")),
        [one for one, _ in runs], details=lambda one: (
            *((f"lost for {penalty.name}", f"{penalty.points:.1f}: {penalty.reason}")
              for penalty in one.penalties),
            ("also tried", f"{one.others} libraries and settings"),
            *([("setting", one.setting)] if one.setting else []), *row_details(one.row)))
