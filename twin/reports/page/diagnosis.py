"""The page of a diagnosis: what is wrong, how sure that is, and what to do."""

from __future__ import annotations

from hwmodels.quantities import significant
from twin.attribution.diagnosis.faults import DECLARED, STAND_IN, UNKNOWN
from twin.attribution.diagnosis.finding import REPEATS, SURE, Diagnosis, explain_rows, say_ratio
from twin.reports.bars import BarChart, list_bars
from twin.reports.page.bars import plot_bars
from twin.reports.page.beside import LIKELY, list_faults
from twin.reports.page.parts import (
    Answer,
    Notes,
    Page,
    Pairs,
    Plot,
    describe_warnings,
    make_section,
    present,
)
from twin.reports.page.provenance import made_by
from twin.reports.palette import BLUE, GREEN
from twin.reports.tables.limits import format_chance

MOST_DRAWN = 12


def describe_diagnosis(diagnosis: Diagnosis, command: str = "") -> Page:
    """Return the page of a diagnosis."""
    verdict = diagnosis.verdict
    kind, chance = verdict.kind, diagnosis.stated
    declared = verdict.fault.kind == DECLARED
    others = [f"{name} {format_chance(one)}" for name, one in [*diagnosis.kinds.items()][1:4]]
    explains = ("No listed fault explains {} well" if verdict.fault.kind == UNKNOWN else
                f"{_head(diagnosis.answer)} explains {{}} best")
    sentence = (explains.format(f"the {diagnosis.quantity} of {diagnosis.over}")
                + f" ({kind}: {format_chance(chance)}); {diagnosis.origin} is "
                f"{say_ratio(diagnosis.declared_ratio)} of what was expected.")
    if chance < SURE:
        sentence += f" It is only the likeliest of several: {', '.join(others)}."
    cautions = list(diagnosis.remarks)
    if diagnosis.errors == STAND_IN:
        cautions.insert(0, "other kernels stand in for those that ran: faults of kernels and small "
                           "faults may be accused or missed; give --healthy DIR")
    pairs = [(name, text) for name, text in (
        ("evidence", ", ".join(diagnosis.rests_on)),
        ("cannot see", diagnosis.blind_to if declared else ""),
        ("not distinguishable", ", ".join(diagnosis.not_distinguishable)),
        ("weighed under", diagnosis.errors.source),
        (REPEATS, "not known from one run" if diagnosis.repeats is None
         else f"{significant(100 * diagnosis.repeats, 2)} %"),
        ("counters", ", ".join(diagnosis.counters)
         or f"{diagnosis.quantity} alone, as any core with a cycle counter sends"),
        ("pattern", diagnosis.left_out), ("to tell", diagnosis.telling),
        ("no visible effect", diagnosis.unseen)) if text]
    sections = [
        describe_warnings(cautions),
        make_section("faults-found", "What may explain it", draw_chances(diagnosis),
                     draw_effects(diagnosis), list_faults(diagnosis)),
        make_section("observed", "Observed besides", Notes(
            diagnosis.observations)) if diagnosis.observations else None,
        make_section("evidence", "What it rests on", Pairs(tuple(pairs))),
        made_by(command)]
    return Page(
        title=_name(diagnosis), subtitle=f"diagnosis over {len(diagnosis.findings)} "
        f"faults · pattern of {diagnosis.quantity}",
        verdict=_head(diagnosis.answer) + ", only the likeliest of several" * (chance < SURE),
        tone="good" if declared and diagnosis.repeats_as_declared else "bad" * (
            not declared and chance >= SURE),
        sentence=sentence, advice="" if diagnosis.remedy == "none needed" else diagnosis.remedy,
        advises="What to do next",
        answers=(
            Answer("probability of the kind", format_chance(chance), range=kind,
                   kind=""),
            Answer("probability of the fault", format_chance(verdict.probability),
                   range=f"{format_chance(verdict.prior)} before the evidence", kind=""),
            Answer(f"{diagnosis.origin} over expected", kind="",
                   value=say_ratio(diagnosis.declared_ratio), range=f"{diagnosis.quantity}, "
                   + ("known to be right" if diagnosis.healthy else "as declared"))),
        sections=present(sections))


def _head(text: str) -> str:
    """Begin with a capital; units and names of operators keep theirs."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]


def _name(diagnosis: Diagnosis) -> str:
    """Say what was diagnosed, as far as a fault's deployment says it."""
    found = next((one.fault.deployment for one in diagnosis.findings if one.fault.deployment), None)
    return "What explains the measurement" if found is None else (
        f"{found.graph.name} on {found.board.name}: what explains the measurement")


def draw_chances(diagnosis: Diagnosis) -> Plot:
    """Draw each kind of fault by its probability."""
    kinds = [one for place, one in enumerate(diagnosis.kinds.items())
             if place < 3 or one[1] >= LIKELY][:MOST_DRAWN]
    return plot_bars(BarChart(
        rows=tuple(kind for kind, _ in kinds), axis="probability, %", name="chances",
        title="Probability by kind of fault",
        caption=f"{kinds[0][0]} has {format_chance(kinds[0][1])}.",
        bars=list_bars([100 * chance for _, chance in kinds], (BLUE, ""), lambda row, _: (
            f"{kinds[row][0]}<br>{format_chance(kinds[row][1])}"), "probability")),
        half=True, height_px=100 + 26 * len(kinds),
        layout={"xaxis": {"title": {"text": "probability, %"}, "range": [0, 100]}})


def draw_effects(diagnosis: Diagnosis) -> Plot | None:
    """Draw by how much the verdict changes each layer; None where nothing is wrong."""
    verdict = diagnosis.verdict
    changes = {index: share for index, share in explain_rows(diagnosis, verdict).items()
               if index is not None}
    if verdict.fault.kind == DECLARED or not any(changes.values()):
        return None
    most = max(changes, key=lambda index: abs(changes[index]))
    rows = tuple(map(str, changes))
    return plot_bars(BarChart(
        rows=rows, axis="change, %", across="layer", upright=True, name="effects",
        title="What it does to each layer",
        caption=f"{verdict.fault.name}: layer {most} moves most, {100 * changes[most]:+.1f} % "
             "beside what is predicted as declared.",
        bars=list_bars([100 * one for one in changes.values()], (GREEN, "/"), lambda row, share: (
            f"layer {rows[row]}: {share:+.1f} %"), "change")), half=True, height_px=360)
