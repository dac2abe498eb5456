"""Faults by probability: Bayes' rule over all that were weighed, with what speaks for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwmodels.quantities import significant
from twin.attribution.diagnosis.again import describe_contradiction
from twin.attribution.diagnosis.evidence import Evidence
from twin.attribution.diagnosis.faults import (
    BINARY,
    COMPILED,
    FLASH_KINDS,
    GROUPS,
    HEALTHY_SOURCE,
    JOINED,
    SLOW_FLASH,
    UNKNOWN,
    Fault,
    prior_of,
)
from twin.attribution.diagnosis.finding import ADDED, APART, Diagnosis, Finding, order_findings
from twin.attribution.diagnosis.likelihood import AGAIN, choose_temper
from twin.attribution.diagnosis.mark_chances import weigh_ticks
from twin.attribution.diagnosis.marks import describe_marks
from twin.attribution.diagnosis.weighing import NO_EFFECT, Weight

CAPPED, MOST_APART, MOST_APART_REBUILT = 0.65, 0.1, 0.3
"""Most that is stated of a kind whose likeliest fault leaves layers apart by more than so much, as
the standard deviation of a logarithm: of memories and clocks, and of other kernels, which are
foreseen less well. Assumed."""

FAR_APART = 2.0
"""Standard deviations of errors of kernels read from a binary, and of their prices, that layers may
be further apart by. Where `MOST_APART` alone counted, verdicts stated at 0.62 were right in 87 to
96 % (hidden boards of seeds 950 to 962, 1036 and 1037): layers of two of three healthy
Cortex-M7 are 0.12 and 0.14 apart there, 1.6 and 1.8 times what errors of prices leave."""

OTHER_STATE = 0.05
"""How likely a second measurement is of a board in another state than the first. Assumed."""

LEFT = math.log(4.0)
"""Logarithm of a factor on the time that no explanation leaves over (assumed)."""

BARELY = 3.2
"""A factor on the odds up to which evidence is "not worth more than a bare mention"
(Kass and Raftery, Bayes Factors, JASA 90, 1995)."""

BARELY_BY_SIZE = 10.0
"""The same of kinds of slow flash, which differ by sizes alone, of which few are tried: a prefetch
that is off, and more wait states, leave one pattern."""

AGAINST_HEADER = "the header says another level of optimisation"

CLOSER = 0.5
"""What comes so much closer to what was measured than the likeliest fault is worth telling: the
root of the mean square over layers, as a share."""


Weighed = tuple[tuple[Fault, ...], list[Weight]]
"""Hypotheses, what was declared first, and how likely what was measured is under each."""


def rank(hypotheses: Weighed, evidence: Evidence, repeats: Sequence[float | None],
         second: Weighed | None = None) -> Diagnosis:
    """Apply Bayes' rule and say what speaks for each.

    Parameters
    ----------
    evidence
        What they were weighed by.
    repeats
        Within which runs repeat, of each measurement.
    second
        The same of a second measurement by itself, where as declared it contradicts the first.
    """
    faults, weighed = hypotheses
    pattern = evidence.pattern
    priors = _find_priors(faults, evidence)
    temper = choose_temper(evidence.errors, healthy=evidence.reference is not None)
    if evidence.also is not None:
        temper = replace(temper, whole=1.0)
    weighed = _hear_second(weighed, second, evidence) if second else weighed
    chances = temper.chances(priors, [one.shape for one in weighed], [one.total for one in weighed],
                             [one.marks for one in weighed])
    # whose clock ticks are of is assumed: it distinguishes no kinds
    kinds = _name_kinds(faults, np.array(priors) * np.exp([weigh_ticks(fault, evidence.marks)
                                                 for fault in faults]), chances, weighed)
    chances = _cap_apart(faults, weighed, chances, kinds, evidence)
    unseen = np.array([_is_indistinct(fault, one, weighed[0])
                       for fault, one in zip(faults, weighed, strict=True)])
    chances[0] += chances[unseen].sum()  # what shows nothing here is as declared to any evidence
    chances[unseen] = 0.0
    total = float(pattern.measured.sum())
    found = [Finding(
        fault=fault, kind=kind, prior=prior, probability=float(chance),
        evidence=(fit, *(ADDED,) * (JOINED in fault.kind),
                  *(AGAINST_HEADER,) * bool(fault.doubted), *one.counted),
        predicted=dict(zip(pattern.layers, one.predicted, strict=True)))
        for fault, kind, prior, chance, one, fit in zip(
            faults, kinds, priors, chances, weighed, _describe_fits(weighed, total), strict=True)]
    errors = evidence.errors if evidence.reference is None else replace(
        evidence.errors, source=HEALTHY_SOURCE)
    ranked = Diagnosis(
        findings=order_findings(found),
        quantity=pattern.quantity, layers=pattern.layers, errors=errors, measured=total,
        repeats=repeats[0], counters=pattern.counted, left_out=pattern.left_out,
        observations=(*describe_marks(evidence.marks), *note_header(found, weighed)),
        indistinct=tuple(fault.name for fault, one in zip(faults, unseen, strict=True) if one),
        healthy=evidence.reference is not None,
        odd=_name_operator(faults[0], weighed[0], evidence))
    verdict = dict(zip(map(id, faults), weighed, strict=True))[id(ranked.verdict.fault)]
    contradiction = describe_contradiction(evidence, verdict.changed, verdict.shift)
    if second and contradiction and evidence.also:
        ranked = replace(ranked, second=rank(second, evidence.also, repeats[1:]))
    return replace(ranked, remarks=tuple(text + ranked.beside for text in contradiction))


def _find_priors(faults: tuple[Fault, ...], evidence: Evidence) -> tuple[float, ...]:
    return prior_of(faults, evidence.priors, own=evidence.errors == BINARY,
                    measured=evidence.counter)


def _hear_second(weighed: Sequence[Weight], second: Weighed, evidence: Evidence) -> list[Weight]:
    """Return weights in which a second measurement may be of another state than the first.

    p(B | A, fault) = (1 - p) p(B | A, the fault in both) + p sum over faults g of p(g) p(B | g);
    the first is 0 of a fault that leaves them in contradiction.
    """
    faults, alone = second
    other = math.log(OTHER_STATE) + float(np.logaddexp.reduce([
        math.log(prior) + one.log(AGAIN.shape)
        for prior, one in zip(_find_priors(faults, evidence), alone, strict=True)]))
    heard = [other if describe_contradiction(evidence, one.changed, one.shift) else
             float(np.logaddexp(math.log1p(-OTHER_STATE) + one.again, other)) for one in weighed]
    return [replace(one, marks=one.marks - one.again + again)
            for one, again in zip(weighed, heard, strict=True)]


def _name_kinds(faults: tuple[Fault, ...], priors: np.ndarray, chances: np.ndarray,
                weighed: Sequence[Weight]) -> list[str]:
    """Return each fault's kind; of a group's the evidence does not distinguish, one for all.

    So of a group's beside the same other fault. What makes a board faster is none of slower flash.
    """
    found: dict[str, str] = {}
    faster = np.array([one.predicted.sum() < (1 - NO_EFFECT) * weighed[0].predicted.sum()
                       for one in weighed])
    kinds = np.array([f"faster {fault.kind}" if quick and fault.kind in FLASH_KINDS else fault.kind
                      for fault, quick in zip(faults, faster.tolist(), strict=True)])
    odds = {kind: float((chances / priors)[kinds == kind].max()) for kind in sorted({*kinds})}
    for name, group in GROUPS.items():
        barely = BARELY_BY_SIZE if name == SLOW_FLASH else BARELY
        answers: dict[str, list[str]] = {}
        for kind in odds:
            parts = kind.split(JOINED)
            if kind not in found and len({*parts}.intersection(group)) == 1:
                answer = JOINED.join(sorted(name if part in group else part for part in parts))
                answers.setdefault(answer, []).append(kind)
        for answer, own in answers.items():
            most = max(odds[kind] for kind in own)
            alike = [kind for kind in own if odds[kind] * barely > most]
            found |= dict.fromkeys(alike, answer) if len(alike) > 1 else {}
    return [found.get(kind, fault.kind) for fault, kind in zip(faults, kinds.tolist(), strict=True)]


def _cap_apart(faults: tuple[Fault, ...], weighed: Sequence[Weight],
               chances: np.ndarray, answers: Sequence[str], evidence: Evidence) -> np.ndarray:
    """Return probabilities in which kinds that leave layers far apart have `CAPPED` in all at most.

    So have those that leave two measurements in contradiction. What they had besides is of
    something nobody listed, and so is all of what leaves `LEFT`.
    """
    kinds = np.array(answers)
    unknown = kinds == UNKNOWN
    left = np.array([abs(float(np.average(one.residual, weights=one.predicted)))
                     for one in weighed])
    capped = np.where(unknown | (left < LEFT), chances, 0.0)
    apart = np.zeros(len(faults), bool)
    for kind in set(kinds.tolist()) - {UNKNOWN}:
        own = kinds == kind
        likeliest = int(np.argmax(np.where(own, capped, -1.0)))
        fault, one = faults[likeliest], weighed[likeliest]
        apart |= own & bool(_is_apart(fault, one, evidence) or np.std(one.changed) > MOST_APART
                            or describe_contradiction(evidence, one.changed, one.shift))
    capped[apart] *= min(1.0, CAPPED / max(capped[apart].sum(), 1e-300))
    return np.asarray(np.where(unknown, (1 - capped[~unknown].sum()) * (
        chances / max(chances[unknown].sum(), 1e-300)), capped))


def _is_apart(fault: Fault, weight: Weight, evidence: Evidence) -> bool:
    """Whether a fault leaves layers farther apart than what it is known by does."""
    read = evidence.errors == BINARY
    counted = not read and fault.errors == COMPILED  # as `COMPILED` is meant
    return float(np.std(weight.residual)) > max(
        MOST_APART_REBUILT if fault.rebuilds and not counted else MOST_APART,
        FAR_APART * weight.apart * read)


def _name_operator(declared: Fault, weight: Weight, evidence: Evidence) -> str:
    """Name the operator that is farthest off beside all others, where layers are far apart."""
    families, residual = np.array(evidence.pattern.families), weight.residual
    off = {name: float(residual[families == name].mean() - residual[families != name].mean())
           for name in sorted(set(evidence.pattern.families)) if any(families != name)}
    if not off or not _is_apart(declared, weight, evidence):
        return ""
    name = max(off, key=lambda one: abs(off[one]))
    return (f"{name} (measured / predicted {significant(math.exp(off[name]), 3)} x that of the "
            "other layers)")


def note_header(found: Sequence[Finding], weighed: Sequence[Weight]) -> tuple[str, ...]:
    """Say which fault fits best by far where only its header speaks against it.

    How often a header is wrong is assumed, so the report names what that assumption alone
    outweighs.
    """
    misfits = [float(np.sqrt(np.mean(one.residual**2))) for one in weighed]
    best = min((place for place, finding in enumerate(found) if JOINED not in finding.fault.kind),
               key=misfits.__getitem__)
    likeliest = max(range(len(found)), key=lambda place: found[place].probability)
    if not found[best].fault.doubted or misfits[best] > CLOSER * misfits[likeliest]:
        return ()
    return (f"{found[best].fault.name} fits best ({found[best].evidence[0]}), but "
            f"{AGAINST_HEADER}: read the image itself where that header may have been edited",)


def _is_indistinct(fault: Fault, weight: Weight, declared: Weight) -> bool:
    """Whether neither the fault's effect nor the evidence distinguishes it from what was declared.

    Never of two at once: each moves a layer alone, so their sum is small only where they undo each
    other, and that was added up and not predicted (the second may do nothing beside the first).
    """
    if JOINED in fault.kind:
        return False
    small = float(np.abs(weight.moved).max()) < NO_EFFECT
    return (fault.deployment is not None and not fault.shifts_clock and small
            and abs(weight.log() - declared.log()) < 1.0)


def _describe_fits(weighed: Sequence[Weight], total: float) -> list[str]:
    """Say how far each is off, all with two more digits where several would read alike."""
    fits = [_describe_fit(one, total, 0) for one in weighed]
    return fits if len(set(fits)) == len(fits) else [_describe_fit(one, total, 2)
                                                     for one in weighed]


def _describe_fit(weight: Weight, total: float, digits: int) -> str:
    spread = math.exp(float(np.std(weight.residual))) - 1
    return (f"measured {total / float(weight.predicted.sum()):.{2 + digits}f} x what it predicts, "
            f"{APART}{100 * spread:.{digits}f} %")
