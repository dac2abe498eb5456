"""Guidelines as a page: every line with the runs it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hwmodels.quantities import format_energy, format_frequency, format_time, list_by_key
from twin.reports.charts import Axis, Chart, Curve
from twin.reports.columns import Column, number
from twin.reports.page.charts import plot_chart
from twin.reports.page.parts import Notes, Page, Table, make_section, make_table
from twin.reports.palette import BLUE, GREY
from twin.studies.decisions import INFEASIBLE, Decision
from twin.studies.guidelines import Guidelines, HardwareClass, Leaf, StudyEffect
from twin.studies.rows import Row
from twin.studies.study.figures import name_figure

LITTLE, COSTLY, MOST = 0.02, 1.5, 12
"""An effect this near 1 in the median is no remedy; one above is a pitfall; lines of a list."""

Causes = Mapping[str, Sequence[tuple[str, float, str]]]
Wording = Mapping[str, Sequence[str]]
"""What studies found, by the section it belongs to."""

NONE = ("None: the studies hold no such pair.",)

SECTIONS = {"libraries": "Libraries", "placement": "Placement and caches", "clocks": "Clocks",
            "precision": "Precision", "fusion": "Fusion, patches and tiles",
            "width": "Smaller networks"}


def describe_guide(guide: Guidelines, causes: Causes, wording: Wording) -> Page:
    """Return the page.

    Parameters
    ----------
    causes
        Largest shares of time by class of hardware: (cause, share, what it was predicted of).
    wording
        Findings of studies by key of `SECTIONS`.
    """
    sections = [
        make_section("decisions", "Which hardware meets what", *(
            item for network, leaves in guide.decisions.items() if leaves
            for item in (plot_chart(chart_decisions(network, leaves),
                                    height_px=80 + 44 * len(leaves), least_px=900),
                         _decide(network, leaves))),
            lead="A tree for each network, learnt from requirements drawn over the range of its "
                 "rows, each given the row that meets it: the cheapest chip, then that with least "
                 "energy. A leaf cites the rows it stands on by number and study; right: of the "
                 "requirements that lead there."),
        make_section("classes", "Classes of hardware", _list_uses(guide.classes), *(
            item for one in guide.classes for item in _class(one, causes.get(one.core, []))),
            lead="Best for: networks no other class runs in less time or with less energy. Avoid "
                 "when: what its boards cannot do, or how far behind they are. Use case: how often "
                 "its fastest row runs a network, and with which energy."),
        *(make_section(name, title, Notes(tuple(wording[name])))
          for name, title in SECTIONS.items() if wording.get(name)),
        make_section(
            "pitfalls", "Pitfalls", Notes(tuple(_list_pitfalls(guide.effects)) or NONE),
            lead=f"Changes that cost more than x{COSTLY} in the median over all pairs of runs that "
                 "differ in nothing else."),
        make_section("checklist", "Checklist", Notes(tuple(_checklist(guide.effects)) or NONE),
                     lead="Changes by what they save in the median over such pairs."),
        make_section(
            "costs", "Which time, which energy", *_tree("core cycles", guide.time_tree),
            *_tree("pJ", guide.energy_tree),
            lead="Time is core cycles per multiply-accumulate (MAC) x MACs / clock, or per layer x "
                 "layers / clock; energy is pJ per MAC x MACs, or per layer x layers. Errors are "
                 "of the runs of a leaf, predicted by a tree that never saw their network (median "
                 "of the factor)."),
    ]
    return Page(
        title="Guidelines from results", subtitle=f"{guide.rows} predicted configurations of "
        f"{', '.join(guide.studies)}", verdict=f"{len(guide.classes)} classes of hardware", tone="",
        sentence="Predictions, not measurements; their intervals are in the studies. What no study "
        "varied is not here.", advice="", advises="", answers=(), sections=tuple(
            section for section in sections if section.items))


def _decide(network: str, leaves: Sequence[Decision]) -> Table:
    columns: Sequence[Column] = (
        Column("if", lambda leaf: ", ".join(leaf.rules) or "always"), Column("choose", "choice"),
        number("right", "right", "{:.0%}"), number("of", "requirements", "{}"),
        Column("stands on", lambda leaf: "; ".join(_cite(one, row) for one, row in leaf.rows)
               or "no row meets them"))
    ranked = sorted(leaves, key=lambda leaf: (leaf.choice == INFEASIBLE, -leaf.requirements))
    return make_table(f"decide-{network.partition(' ')[0]}", f"{network}: requirements to hardware",
                      columns, ranked)


def _join(leaves: Sequence[Decision]) -> Sequence[Decision]:
    """Return leaves with branches all of whose leaves choose the same drawn as one."""
    for deepest in range(max(len(end.path) for end in leaves), 0, -1):
        found: list[Decision] = []
        for end in leaves:
            last = found[-1] if found else None
            if last is not None and last.choice == end.choice and (
                    len(last.path) == len(end.path) == deepest
                    and last.path[:-1] == end.path[:-1]):
                count = last.requirements + end.requirements
                found[-1] = replace(end, path=end.path[:-1], requirements=count, right=(
                    last.right * last.requirements + end.right * end.requirements) / count)
            else:
                found.append(end)
        leaves = found
    return leaves


def chart_decisions(network: str, found: Sequence[Decision]) -> Chart:
    """Describe a tree from its root on the left: upper branches are limits up to the value."""
    leaves = _join(found)
    spots = list_by_key((end.path[:depth], place) for place, end in enumerate(leaves)
                        for depth in range(len(end.path) + 1))
    at = {path: (float(len(path)), (min(held) + max(held)) / 2) for path, held in spots.items()}
    ends = {end.path: end for end in leaves}
    asked = {path[:-1]: path[-1][0] for path in spots if path}
    deepest = max(map(len, spots))
    inner, last = ([path for path in spots if (path in ends) == is_end] for is_end in (False, True))
    return Chart(
        name=f"tree-{network.partition(' ')[0]}", title=f"{network}: a tree of requirements",
        caption="Each node asks for a limit of yours: yes is the branch above, no (a looser limit) "
                "the one below. At its end stands the cheapest board whose row meets all, and for "
                "which share of the requirements there that is right; the table has its rows.",
        curves=(*(Curve(x=[before, before, after], y=[height, end, end], dashes="-", colour=GREY)
                  for path in spots if path
                  for (before, height), (after, end) in ((at[path[:-1]], at[path]),)),
                *(Curve(x=[at[path][0] for path in paths], y=[at[path][1] for path in paths],
                        mark=mark, colour=BLUE, sizes=(6.0,))
                  for paths, mark in ((inner, "o"), (last, "s")) if paths)),
        notes=tuple((*at[path], f"{ends[path].choice} ({ends[path].right:.0%})" if path in ends
                     else "{} \u2264 {} {}?".format(*asked[path].rsplit(" ", 2)))
                    for path in spots),
        x=Axis(ends=(-0.1, deepest + 1.1)), y=Axis(ends=(len(leaves) - 0.5, -0.5)))


def _cite(place: int, row: Row) -> str:
    energy = "" if row.energy_uj is None else f", {format_energy(row.energy_uj)}"
    return (f"row {place} {row.runtime} {format_frequency(row.clock_hz)} {row.placement} "
            f"{format_time(row.time_us)}{energy} ({row.cell})")


def _list_uses(classes: Sequence[HardwareClass]) -> Table:
    def best(one: HardwareClass) -> str:
        return "; ".join(f"{what}: {names}" for what, names in one.best_at.items()) or (
            "nothing here")

    def avoid(one: HardwareClass) -> str:
        phrases = [f"{failure} ({count} rows)" for failure, count in one.refusals]
        if one.behind is not None and one.behind > 1 + LITTLE:
            phrases.append(f"time matters: x{one.behind:.3g} of the best class'")
        return "; ".join(phrases) or "nothing here"

    return make_table("uses", "What each class is for", (
        Column("class", "core"), Column("best for", best), Column("avoid when", avoid),
        Column("use case", lambda one: "; ".join(one.uses) or "no row"),
        Column("boards", lambda one: ", ".join(one.boards))), classes)


def _tree(name: str, leaves: Sequence[Leaf]) -> Iterator[Table | Notes]:
    if not leaves:
        yield Notes((f"Too few rows know the {name}.",))
        return
    yield make_table(f"tree-{name.split()[-1]}", name, (
        Column(name, lambda leaf: f"{_number(leaf.typical)} per {leaf.per}"),
        Column("if", lambda leaf: ", ".join(leaf.rules) or "always"), number("runs", "runs", "{}"),
        Column("off by, held-out network", lambda leaf: "not known" if leaf.error is None
               else f"x{leaf.error:.2f}")), sorted(leaves, key=lambda one: (one.per, one.typical)))


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def _class(one: HardwareClass, causes: Sequence[tuple[str, float, str]]) -> Iterator[Table]:
    remedies = [f"{effect.value}: {effect.words} ({study})" for study, effect in one.effects
                if effect.figure == "time_us" and effect.median < 1 - LITTLE]
    lines = [(f"time goes to {cause}", f"{share:.0%} in the median of {of}",
              ("; ".join(remedies[:3]) or "none of the changes studied") if not place else "")
             for place, (cause, share, of) in enumerate(causes)]
    if lines:
        yield make_table(f"class-{one.core}", one.core, tuple(
            Column(header, lambda line, place=place: line[place])  # type: ignore[misc]
            for place, header in enumerate((
                "symptom", "evidence", "remedy that was predicted on this class"))), lines)


def _list_pitfalls(effects: Iterable[StudyEffect]) -> list[str]:
    costly = sorted((one for one in effects if one[1].median > COSTLY),
                    key=lambda one: -one[1].median)
    return [f"{effect.value}: {effect.words} in {len(effect.ratios)} pairs ({study})"
            for study, effect in costly[:MOST]]


def _checklist(effects: Iterable[StudyEffect]) -> Iterator[str]:
    for study, effect in effects:
        if effect.median < 1 - LITTLE:
            better = sum(ratio < 1 for ratio in effect.ratios)
            yield (f"{effect.value}: {effect.words}; less {name_figure(effect.figure)} in "
                   f"{better} of {len(effect.ratios)} pairs ({study})")
