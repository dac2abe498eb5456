"""What a diagnosis found: faults by probability, and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from hwmodels.frozen import entity
from hwmodels.quantities import significant, sum_by_key
from twin.attribution.compatibility import HIDING
from twin.attribution.diagnosis.faults import (
    DECLARED,
    FIRST_RUN,
    JOINED,
    REPEATED,
    UNKNOWN,
    ErrorModel,
    Fault,
)

SURE = 0.5
"""A verdict below this probability is only the likeliest of several."""

ADVISED = 0.7
"""Below this, and so wherever layers stay far apart, what to do is only a condition."""

APART = "layers apart by "
"""Before the figure that ends the first evidence of each fault."""

ADDED = "what each does alone, added up: not predicted together"
"""Evidence of two faults at once."""

GIVE = "give a measurement known to be right (--healthy DIR), or "

NONE_NEEDED = "none needed"
"""What to do where what was expected was measured."""

CLOSE = math.log(1.02)
"""What is off by less needs nothing: networks on boards that were measured miss by more."""

FAR_OFF = ("look at the timer's clock and prescaler, the unit, how many runs were added up, the "
           "core's clock, and the library (--runtime): prices are seldom so far off, and learnt "
           "from this they would hide what is wrong")
"""What to do in place of learning prices where the total is more than `FAR` off."""

FAR = 2.0
"""Standard deviations of what all layers may be off by, beyond which "as declared" is doubted."""

ALIKE = 0.3
"""What is at least as likely to be measured under a fault, beside "as declared", is not named."""

REPEATS_FLOOR = 0.002
"""Runs of one image repeat within this at best, as a share: an image linked again moves by it."""

MOST_OF_KIND = 3
"""Faults of one kind that are shown."""

UNSTEADY = 0.02
"""Runs that repeat worse, as a share, say little (assumed): cores repeat within 0.2 %."""

REPEATS = "the sum of a run's layers repeats within"

STEADY_FIRST = ("make runs repeat first (twin measure --mask, a fixed clock, nothing beside it on "
                "the core), then diagnose again")
"""What to do where they do."""


@entity
class Finding:
    """A fault, weighed.

    Parameters
    ----------
    kind
        What it is answered as: the fault's own, or that of several nothing distinguishes.
    prior, probability
        Before and after the evidence.
    evidence
        Figures that speak for or against it.
    predicted
        Amount by layer under the fault, in the diagnosis' quantity.
    """

    fault: Fault
    kind: str
    prior: float
    probability: float
    evidence: tuple[str, ...]
    predicted: Mapping[int | None, float]


@entity
class Diagnosis:
    """Faults by probability.

    Parameters
    ----------
    findings
        Those of the most probable kind first, in it the most probable first: the verdict.
    quantity
        What the pattern is of: "cycles", "time" or "instructions".
    errors
        Under which it was weighed.
    measured
        Of the pattern's layers together.
    repeats
        Within which runs repeat, as a share of the whole; None of a single run: not known.
    counters
        Counts besides the pattern that it rests on; most Cortex-M have none of them.
    observations
        Evidence outside the pattern.
    indistinct
        Faults that change nothing here: they are neither found nor ruled out.
    healthy
        Whether it was set against a measurement known to be right.
    left_out
        Which layers the pattern leaves out, and why.
    telling
        Which further measurement would tell the two likeliest explanations apart; "" without.
    inferred
        Whether the library was inferred from the measured times.
    origin
        "measured" or "simulated": of the runs.
    odd
        The operator that makes layers far apart as declared, and by how much; "" where none does.
    second
        Of a second measurement by itself, where it contradicts the first.
    """

    findings: tuple[Finding, ...]
    quantity: str
    layers: tuple[int | None, ...]
    errors: ErrorModel
    measured: float
    repeats: float | None
    counters: tuple[str, ...]
    observations: tuple[str, ...]
    indistinct: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    healthy: bool = False
    telling: str = ""
    left_out: str = ""
    rests_on: tuple[str, ...] = ()
    inferred: bool = False
    origin: str = "measured"
    odd: str = ""
    second: Diagnosis | None = None

    def of_inferred(self) -> Diagnosis:
        """Return this as of a library that was inferred from the measured times."""
        return replace(self, inferred=True, telling="; ".join(filter(None, (self.telling, HIDING))))

    @property
    def kinds(self) -> dict[str, float]:
        """Probability by kind of fault, most probable first."""
        return sum_kinds(self.findings)

    @property
    def over(self) -> str:
        """What the pattern is of, in words."""
        return ("the network as a whole" if self.layers == (None,) else
                f"{len(self.layers)} layers")

    @property
    def stated(self) -> float:
        """Probability of the verdict's kind: what a report states."""
        return next(iter(self.kinds.values()))

    @property
    def verdict(self) -> Finding:
        """The most probable fault of the most probable kind."""
        return self.findings[0]

    @property
    def answer(self) -> str:
        """What the verdict is called: a fault, or what several have in common.

        It is the kind where less than 0.6 of that is one fault's.
        """
        first = self.verdict
        return (first.fault.name if first.kind == first.fault.kind
                and first.probability >= 0.6 * self.stated else first.kind)

    @property
    def beside(self) -> str:
        """What a second measurement shows by itself, where it contradicts the first; else ""."""
        return "" if self.second is None else (
            f"; the second measurement: {self.second.answer}, {100 * self.second.stated:.0f} %")

    @property
    def members(self) -> tuple[Finding, ...]:
        """The likeliest fault of each kind that the verdict stands for."""
        first = {one.fault.kind: one for one in reversed(self.findings)
                 if one.kind == self.verdict.kind}
        return tuple(sorted(first.values(), key=lambda one: -one.probability))

    @property
    def not_distinguishable(self) -> tuple[str, ...]:
        """Faults, one a kind, that are about as likely to be measured so as the verdict.

        Of several that the verdict stands for it is these; of one, what a second may be.
        """
        verdict, members, found = self.verdict, self.members, dict[str, str]()
        if len(members) > 1:
            return tuple(one.fault.name for one in members)
        least, seconds = ALIKE * verdict.probability / verdict.prior, list[str]()
        for one in self.findings:
            kind, name = one.fault.kind, one.fault.name
            parts = kind.split(JOINED)
            if (kind in (verdict.kind, UNKNOWN) or name in self.indistinct
                    or one.probability <= least * one.prior):
                continue
            if verdict.kind in parts:
                seconds += {*parts} - {verdict.kind}
            elif verdict.kind == DECLARED and len(parts) == 1:
                found.setdefault(kind, name)
        return (*found.values(), *[f"with {', '.join(seconds)} besides"] * bool(seconds))

    @property
    def unseen(self) -> str:
        """The faults that change nothing here, in words: sizes of one together."""
        sizes: dict[str, list[str]] = {}
        for name in dict.fromkeys(name.partition(",")[0] for name in self.indistinct):
            sizes.setdefault(re.sub(r"(?<= )\d+", "{}", name), []).extend(
                re.findall(r"(?<= )\d+", name)[:1])
        return (", ".join(text.replace("{}", " or ".join(each), 1) for text, each in sizes.items())
                + ": would change less than 1 % of any layer here") if sizes else ""

    @property
    def other_clock(self) -> str:
        """Another clock that is not distinguishable from the one declared; "" where none is."""
        return next((one.fault.name for one in self.findings if one.fault.shifts_clock
                     and one.fault.name in self.not_distinguishable), "")

    @property
    def declared(self) -> Mapping[int | None, float]:
        """What is predicted as declared, or known to be right, by layer."""
        return next(one.predicted for one in self.findings if one.fault.kind == DECLARED)

    @property
    def declared_ratio(self) -> float:
        """Measured over what is predicted as declared, or known to be right."""
        return self.measured / sum(self.declared.values())

    @property
    def is_unsteady(self) -> bool:
        """Whether runs scatter so widely that hardly any difference would show."""
        return (self.repeats or 0.0) > UNSTEADY

    @property
    def repeats_as_declared(self) -> bool:
        """Whether what was measured is what was expected, as well as runs repeat."""
        return not self.is_unsteady and abs(self.declared_ratio - 1) <= max(
            3 * (self.repeats or 0.0), REPEATS_FLOOR)

    @property
    def is_far(self) -> bool:
        """Whether what was measured is farther off than prices and kernels are, as a rule."""
        return not self.healthy and abs(math.log(self.declared_ratio)) > FAR * self.errors.common

    @property
    def resolution(self) -> float:
        """Share by which all layers may be slower alike and still look as declared."""
        return math.expm1(FAR * (REPEATED if self.healthy else self.errors.common))

    @property
    def blind_to(self) -> str:
        """What a verdict "as declared" cannot see, in words."""
        asked = self.healthy or "--healthy" in self.telling
        return ("a fault that slows all layers alike by less than "
                f"{significant(100 * self.resolution, 2)} %: two standard deviations of the total"
                + ("" if asked else "; --healthy or --also narrows this"))

    @property
    def remedy(self) -> str:
        """What to do next; "none needed" only where what was expected was measured.

        Below `ADVISED` it is a condition.
        """
        fault = self.verdict.fault
        if self.second is not None and fault.kind == DECLARED:
            return ("look for what was otherwise when the second was taken; of it: "
                    + self.second.remedy)
        if self.stated >= ADVISED or (fault.scatters and self.is_unsteady) or (
                fault.kind == DECLARED and not self.repeats_as_declared):
            return self._advise()
        return f"if so: {self._advise()}"

    @property
    def gap(self) -> str:
        """How far what was measured is from what was expected, in words."""
        over = f", over {self.over}" if len(self.layers) > 1 else ""
        return (f"{self.origin} is {say_ratio(self.declared_ratio)} x what "
                f"{'is known to be right' if self.healthy else 'is predicted'}{over}")

    @property
    def reason(self) -> str:
        """Why nothing listed is the verdict, where that is "as declared" and not met; else ""."""
        if self.verdict.fault.kind != DECLARED or self.repeats_as_declared:
            return ""
        runs = (f"{REPEATS} {significant(100 * max(self.repeats, 1e-4), 2)} %"
                if self.repeats is not None else
                "how well runs repeat is not known from a single one (assumed: within "
                f"{100 * REPEATS_FLOOR:.2g} %)")
        return (f"{runs}: no listed fault is surely likelier than another cause" if self.is_far else
                f"{runs}: no listed fault is likelier than "
                f"{'chance' if self.healthy else 'prices or kernels that are off'}")

    def _advise(self) -> str:
        verdict = self.verdict
        if verdict.fault.kind == UNKNOWN:
            return f"{self.gap}, and no listed fault " + (
                "makes it so fast: look for another board or unit, a higher clock (--clock), "
                "another kernel library or level of optimisation (--runtime), or layers that were "
                "not run" if self.declared_ratio < 1 else
                "fits: look for another board, clock, unit or library, and compare cause by cause: "
                "twin attribute")
        if verdict.fault.kind != DECLARED:
            return "; or ".join(dict.fromkeys(one.fault.remedy for one in self.members)) + (
                f"; of the others {self.gap}" * (verdict.fault.kind == FIRST_RUN))
        if self.repeats_as_declared:
            return f"check the core's clock: {self.other_clock} would be measured so, too" \
                if self.other_clock and self.quantity == "cycles" else STEADY_FIRST \
                if "to both sides" in " ".join(self.observations) else NONE_NEEDED
        return f"{self.gap}, and {self.reason}" + (
            f"; {STEADY_FIRST}" if self.is_unsteady and not self.is_far else
            "; state the library first (twin import --runtime): it was inferred from these times"
            if self.inferred else "" if self.healthy else f"; {GIVE}{FAR_OFF}" if self.is_far else
            f"; {GIVE}look at {self.odd} before prices are learnt, which would hide it: which "
            "function is linked for it, and where its data lie" if self.odd else
            "; nothing to do" + "; twin calibrate brings predictions closer" * (
                not self.other_clock) if abs(math.log(self.declared_ratio)) < CLOSE else
            f"; {GIVE}check the core's clock before prices are learnt, which would hide another "
            f"({self.other_clock}, as likely to be measured so)" if self.other_clock else
            f"; {GIVE}learn the board's prices (twin calibrate)")


LEAST_OR = 0.02
"""Of another kind, the least probability that is worth a word."""


def list_likeliest(findings: Sequence[Finding], most: int) -> tuple[Finding, ...]:
    """Return the verdict and the likeliest others, few of a kind, as `order_findings` orders.

    Of each kind worth a word there is one.
    """
    kinds = [list(own) for _, own in groupby(findings, key=lambda one: one.kind)]
    first, *others = (one for own in kinds for one in own[:MOST_OF_KIND])
    leads = [own[0] for own in kinds if sum(one.probability for one in own) >= LEAST_OR]
    kept = sorted(others, key=lambda one: (one not in leads, -one.probability))[:most - 1]
    return (first, *(one for one in others if one in kept))


def sum_kinds(findings: Sequence[Finding]) -> dict[str, float]:
    """Return the probability of each kind of fault, most probable first."""
    sums = sum_by_key((finding.kind, finding.probability) for finding in findings)
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def order_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings by kind, "none of these" once: its sizes are of no interest."""
    unknown = [one for one in findings if one.fault.kind == UNKNOWN]
    merged = [replace(one, prior=math.fsum(each.prior for each in unknown),
                      probability=math.fsum(each.probability for each in unknown))
              for one in unknown[:1]]
    others = [one for one in findings if one.fault.kind != UNKNOWN]
    places = {kind: place for place, kind in enumerate(sum_kinds(findings))}
    return tuple(sorted([*merged, *others], key=lambda one: (places[one.kind], -one.probability)))


def say_ratio(ratio: float) -> str:
    """Write a ratio with three decimals, one far from 1 with three significant digits."""
    return f"{ratio:.3f}" if 0.1 <= ratio < 10 else (
        significant(float(f"{ratio:.3g}")) if ratio >= 10 else f"{ratio:.3g}")


def explain_rows(diagnosis: Diagnosis, finding: Finding) -> dict[int | None, float]:
    """Return by layer by which share a fault changes what was predicted as declared."""
    return {index: finding.predicted[index] / diagnosis.declared[index] - 1
            for index in diagnosis.layers}
