"""Guidelines as a document: every line with the runs it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twin.studies.guidelines import Guidelines, HardwareClass, Leaf
from twin.studies.study.figures import name_figure
from twin.studies.study.findings import Effect

LITTLE = 0.02
"""An effect this near 1 in the median is no remedy."""


def write_guide(guide: Guidelines, causes: dict[str, list[tuple[str, float, str]]]) -> str:
    """Return the document.

    Parameters
    ----------
    guide : Guidelines
        Learnt.
    causes : dict of str to list
        Largest shares of time by class of hardware: (cause, share, what it was predicted of).
    """
    return "\n".join([
        "# Guidelines from results", "",
        f"Learnt from {guide.rows} predicted configurations of: {', '.join(guide.studies)}. "
        "Predictions, not measurements; their intervals are in the studies. What no study varied "
        "is not here.", "",
        "## Which time, which energy", "",
        "Time is core cycles per multiply-accumulate (MAC) x MACs / clock, or per layer x layers / "
        "clock; energy is pJ per MAC x MACs, or per layer x layers. Errors are of the runs of a "
        "leaf, predicted by a tree that never saw their network (median of the factor).", "",
        *_tree("core cycles", guide.time_tree), *_tree("pJ", guide.energy_tree),
        "## Classes of hardware", "",
        *(line for one in guide.classes for line in _class(one, causes.get(one.core, []))),
        "## Checklist", "",
        "Changes by what they save in the median over all pairs of runs that differ in nothing "
        "else:", "", *_checklist(guide.effects), ""])


def _tree(name: str, leaves: Sequence[Leaf]) -> Iterator[str]:
    if not leaves:
        yield f"Too few rows know the {name}."
        yield ""
        return
    yield f"| {name} | if | runs | off by, network left out |"
    yield "| --- | --- | --- | --- |"
    for leaf in sorted(leaves, key=lambda one: (one.per, one.typical)):
        off = "not known" if leaf.error is None else f"x{leaf.error:.2f}"
        rules = ", ".join(leaf.rules) or "always"
        yield f"| {_number(leaf.typical)} per {leaf.per} | {rules} | {leaf.runs} | {off} |"
    yield ""


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def _class(one: HardwareClass, causes: Sequence[tuple[str, float, str]]) -> Iterator[str]:
    yield f"### {one.core}"
    yield ""
    yield f"Boards: {', '.join(one.boards)}."
    yield ""
    if one.fastest:
        yield f"- Choose it for time: least of all classes for {', '.join(one.fastest)}."
    if one.thriftiest:
        yield f"- Choose it for energy: least of all classes for {', '.join(one.thriftiest)}."
    if not one.fastest and one.behind is not None:
        yield f"- Its best time is x{one.behind:.3g} of the best class', median over networks."
    for failure, count in one.refusals:
        yield f"- {count} configurations cannot be: {failure}."
    yield ""
    if causes:
        yield "| symptom | evidence | remedy that was predicted on this class |"
        yield "| --- | --- | --- |"
        remedies = [f"{effect.value}: {effect.words} ({study})" for study, effect in one.effects
                    if effect.figure == "time_us" and effect.median < 1 - LITTLE]
        for place, (cause, share, of) in enumerate(causes):
            remedy = "; ".join(remedies[:3]) or "none of the changes studied" if not place else ""
            yield f"| time goes to {cause} | {share:.0%} in the median of {of} | {remedy} |"
        yield ""


def _checklist(effects: Sequence[tuple[str, Effect]]) -> Iterator[str]:
    for study, effect in effects:
        if effect.median < 1 - LITTLE:
            better = sum(ratio < 1 for ratio in effect.ratios)
            yield (f"- [ ] {effect.value}: {effect.words}; less {name_figure(effect.figure)} in "
                   f"{better} of {len(effect.ratios)} pairs ({study})")
