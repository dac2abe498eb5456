"""Comparisons of every verb, and diagnoses, as JSON documents and CSV rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len, MinLen
from typing_extensions import TypedDict

from hwmodels.files import JsonObject
from hwmodels.frozen import list_fields
from hwmodels.quantities import Record
from twin.attribution import difference as differences
from twin.attribution.diagnosis.finding import Diagnosis as Diagnosed
from twin.attribution.diagnosis.finding import explain_rows
from twin.attribution.difference import Account, Difference
from twin.attribution.idealisation import Split
from twin.attribution.published import describe_sealed
from twin.attribution.tasks import Figure, TaskReport
from twin.attribution.views import PublishedView, View, WhatIf
from twin.documents import (
    ABSENT,
    Count,
    Document,
    Interval,
    Of,
    Positive,
    Says,
    Share,
    fill,
    make_schema,
)
from twin.pricing.document import to_document

Predicted = Annotated[JsonObject, Says("of a what-if: the prediction, of "
                                           "prediction.schema.json")]


class Remark(TypedDict):
    """Where the sides are not of the same thing."""

    level: Literal["refuse", "warn", "note"]
    what: str
    text: str


class Size(TypedDict):
    """Bytes of both sides."""

    name: str
    unit: Literal["bytes"]
    first: int
    second: int
    gap: int


class CauseLine(TypedDict):
    """Causes one counter covers: "clock" is another frequency, "" what no bill explains."""

    causes: Annotated[list[str], MinLen(1)]
    first: int
    second: int | None
    gap: int | None
    counter: Annotated[str | None, Of(lambda line: line.counter or None)]


class Row(TypedDict):
    """A part; gap = second - first = explained + unexplained."""

    index: int | None
    name: str
    op: str
    first: int
    second: int
    gap: int
    explained: int
    unexplained: int
    causes: Annotated[list[CauseLine], Of("lines")]


class Quantity(TypedDict):
    """Rows of one quantity, which sum to the total."""

    quantity: Literal["cycles", "instructions", "time", "energy"]
    unit: Literal["cycles", "instructions", "ns", "nJ"]
    rows: list[Row]
    total: Row


class Side(TypedDict):
    """One of two things compared."""

    kind: Literal["predicted", "simulated", "measured", "published"]
    source: Annotated[str, Says("file or folder")]
    model: str
    model_sha256: str | None
    architecture_id: str | None
    board: str
    runtime: str
    temperature: Literal["cold", "warm"] | None
    clocks_hz: dict[str, Positive]
    placement: dict[str, str]
    runs: Count
    calibration: Annotated[str | None, Of(lambda side: side.calibration or None)]
    cycles: Annotated[dict[str, int], Says("by clock; those of two clocks are never added")]


class Ideal(TypedDict):
    """A resource made ideal, and its share."""

    name: str
    share: int


class Idealised(TypedDict):
    """A view, not the bill: Shapley values of idealised resources; work and shares sum to total."""

    unit: Literal["ns"]
    note: Annotated[str, Of(lambda split: (
        "a view: what remains when resources are made ideal, shared by Shapley value; the bill "
        "is what was predicted"))]
    total: int
    work: int
    resources: Annotated[list[Ideal], Len(0, 6), Of(lambda split: split.shares.items())]


class Fault(TypedDict):
    """A fault that may explain the pattern."""

    kind: Annotated[str, Of("fault.kind")]
    name: Annotated[str, Of("fault.name")]
    prior: Share
    probability: Share
    remedy: Annotated[str, Of("fault.remedy")]
    evidence: list[str]


class Diagnosis(Document):
    """Kinds and faults by probability, with their evidence."""

    kind: Literal["diagnosis"]
    quantity: str
    layers: list[Any]
    left_out: NotRequired[Annotated[str, Says(
        "which layers the pattern leaves out, and why; empty where none")]]
    rests_on: NotRequired[Annotated[list[str], Says("which evidence was used")]]
    verdict: Annotated[str, Of("verdict.fault.name")]
    verdict_kind: Annotated[str, Of("verdict.kind")]
    remedy: NotRequired[str]
    telling: NotRequired[str]
    ratio: NotRequired[Annotated[float, Says("measured to declared")]]
    repeats_within: NotRequired[float | None]
    counters: NotRequired[list[Any]]
    kinds: dict[str, Share]
    errors: Annotated[JsonObject, Of(lambda diagnosis: {
        name: getattr(diagnosis.errors, name) for name in diagnosis.errors.__slots__})]
    observations: list[Any]
    remarks: NotRequired[list[str]]
    indistinct: list[Any]
    not_distinguishable: NotRequired[Annotated[list[str], Says(
        "faults about as likely to be measured so as the verdict")]]
    faults: Annotated[list[Fault], MinLen(2), Of("findings")]
    layer_effects: NotRequired[list[JsonObject]]


class CauseOfTime(TypedDict):
    """A cause of a longer time, weighed."""

    cause: str
    says: str
    detail: Annotated[str, Says("the likeliest size")]
    probability: Annotated[Share, Says("that it is present, alone or with another")]
    alone: Share
    explains_us: Annotated[float, Says("what it would add to the expected time by itself")]
    change: Annotated[str, Says("the line of the build to change")]
    question: str


class Why(Document):
    """Of `twin why`: causes of one measured time by probability."""

    kind: Literal["why"]
    model: str
    board: str
    runtime: str
    measured_us: float
    expected_us: float
    expected_interval: Annotated[Interval, Of(lambda why: {
        "low": why.low_us, "high": why.high_us, "level": 0.9})]
    verdict: Annotated[str, Says("a cause, or as expected")]
    as_expected: Share
    causes: Annotated[list[CauseOfTime], Of("rows")]
    two_at_once: Share
    pairs: Annotated[list[JsonObject], Of(lambda why: [
        {"causes": list(causes), "probability": chance, "explains_us": explains_us}
        for causes, chance, explains_us in why.pairs[:10]])]
    ask: Annotated[str, Of("asked"),
                   Says("the cause whose question is most informative; empty for none")]
    indistinct: Annotated[list[str], Says("causes that would change less than 10 % here")]
    remarks: list[str]


class PossibleCause(TypedDict):
    """A cause whose price could explain what no counter covers, in the main account's unit."""

    cause: str
    probability: Annotated[Share, Says("that it is the largest part")]
    expected: int
    low: Annotated[int, Says("of the 90 % interval of what it accounts for")]
    high: int
    unsure: Annotated[float | None, Says("of its price before, as a logarithm; null for kernels")]
    mostly: Annotated[str, Says("operator whose kernels no price explains; empty where not one")]


class Comparison(TypedDict):
    """Two sides beside each other, in whole units.

    Of `twin compare` (comparison), `attribute` (attribution), `diff` (difference) and `whatif`
    (what-if). Every column of the rows sums to the total's. null means not known, never zero.
    Schema 1 had other keys for each verb. A reader must accept keys it does not know.
    """

    schema: Literal[2]
    kind: Literal["comparison", "attribution", "difference", "what-if"]
    first: Side
    second: Side
    findings: Annotated[list[Remark], Says("refusals (compared anyway) first")]
    accounts: Annotated[list[Quantity], MinLen(1)]
    sizes: Annotated[list[Size], Of(lambda one: one.totals[len(one.accounts):])]
    counters: Annotated[list[CauseLine],
                        Says("events two measurements counted, which nothing prices")]
    notes: Annotated[list[str], Of(lambda one: [
        note for note in (*one.notes, one.pairing.note) if note])]
    limit: NotRequired[Annotated[float | None, Says(
        "of a difference: the largest increase asked for")]]
    exceeding: NotRequired[Annotated[list[str], Says("of a difference: what grew by more")]]
    remarks: NotRequired[list[str]]
    set: NotRequired[Annotated[dict[str, str], Says("of a what-if: path to value")]]
    probability_faster: NotRequired[Annotated[float | None, Says(
        "of a what-if: that the second is really faster; null at stated prices")]]
    before: NotRequired[Predicted]
    after: NotRequired[Predicted]
    epochs: NotRequired[Annotated[JsonObject, Says(
        "on an accelerator: every line of the profiler's report")]]
    diagnosis: NotRequired[Diagnosis]
    possible: NotRequired[Annotated[list[PossibleCause], Says(
        "of an attribution: causes, most probable first")]]
    idealised: NotRequired[Idealised]


class PublishedRow(TypedDict):
    """An open row; the reason says why nothing is predicted."""

    published_by: str
    use: Annotated[Literal["fit"], Of("row.use")]
    reason: Annotated[str | None, Of(lambda one: one.reason or None)]
    comparison: Annotated[JsonObject | None, Says("of comparison.schema.json")]


class Published(TypedDict):
    """Of `twin compare --published`; sealed rows, which only judge, appear as one median."""

    schema: Literal[2]
    kind: Literal["published"]
    model: str
    board: Annotated[str, Of("board.name")]
    rows: list[PublishedRow]
    sealed: Annotated[list[str], Of(lambda view: describe_sealed(view.comparisons))]


class SeveralPublished(Document):
    """Of `twin compare --published` of several networks or boards."""

    kind: Literal["several"]
    results: list[Published]


PublishedOnes = Published | SeveralPublished
"""Of one network on one board, or of several; `kind` says which."""

_OF_VERBS = ("limit", "exceeding", "remarks", "set", "probability_faster", "before", "after",
             "epochs", "diagnosis", "possible", "idealised")


def load_schema() -> JsonObject:
    """Return the JSON Schema (draft 2020-12) comparisons conform to."""
    return make_schema("comparison", Comparison)


def comparison_document(difference: Difference, kind: str, **more: Any) -> JsonObject:
    """Write a comparison as a document of the published schema.

    Every row's gap = sum of its causes' gaps + unexplained, in whole units; rows sum to the total.

    Parameters
    ----------
    difference
        What every verb shows a view of.
    kind
        "comparison", "attribution", "difference" or "what-if".
    more
        Of the verb: its limit, what was set, a diagnosis ...
    """
    return fill(Comparison, difference, kind=kind, **{
        name: more.get(name, ABSENT) for name in _OF_VERBS})


def view_document(view: View) -> JsonObject:
    """Write what `twin compare` or `twin attribute` show: the comparison, and what goes with it."""
    more: JsonObject = {}
    if view.tasks is not None:
        more["epochs"] = tasks_document(view.tasks)
    if view.diagnosis is not None:
        more["diagnosis"] = diagnosis_document(view.diagnosis)
    if view.possible:
        more["possible"] = [fill(PossibleCause, one) for one in view.possible]
    if "as predicted" in view.splits:
        more["idealised"] = split_document(view.splits["as predicted"])
    return comparison_document(view.difference, view.kind, **more)


def published_document(view: PublishedView) -> JsonObject:
    """Write open rows as comparisons, and what is said of the sealed ones together."""
    return fill(Published, view, rows=[
        fill(PublishedRow, one, comparison=None if (
            difference := view.differences.get(place)) is None else
            comparison_document(difference, "comparison"))
        for place, one in enumerate(view.comparisons) if not one.sealed])


def difference_document(difference: Difference, limit: float | None,
                        exceeding: Sequence[differences.Row] = ()) -> JsonObject:
    """Write what `twin diff` shows: the comparison, its limit and what grew by more."""
    return comparison_document(difference, "difference", limit=limit,
                               exceeding=[row.label for row in exceeding])


def what_if_document(changed: WhatIf) -> JsonObject:
    """Write a what-if: what was set, both predictions, and what moved."""
    return comparison_document(
        changed.difference, "what-if", remarks=list(changed.effects),
        set={path: str(value) for path, value in changed.changes.items()},
        probability_faster=changed.odds, before=to_document(changed.before),
        after=to_document(changed.after))


def split_document(split: Split) -> JsonObject:
    """Write an idealised split."""
    return fill(Idealised, split)


def tasks_document(report: TaskReport) -> JsonObject:
    """Write the lines of an accelerator's report, of every task and of the whole model."""
    def write(lines: Mapping[str, Figure]) -> JsonObject:
        return {name: list_fields(one, "first", "second") for name, one in lines.items()}

    return {"paired_by": report.paired_by, "gaps": list(report.gaps),
            "whole": write(report.whole), "stated": write(report.stated),
            "epochs": [{"first": None if pair.first is None else pair.first.name,
                        "second": None if pair.second is None else pair.second.name,
                        "lines": write(pair.lines)} for pair in report.pairs]}


def diagnosis_document(diagnosis: Diagnosed) -> JsonObject:
    """Write a diagnosis as a document: kinds and faults by probability, with their evidence."""
    return fill(
        Diagnosis, diagnosis, left_out=diagnosis.left_out, rests_on=list(diagnosis.rests_on),
        remedy=diagnosis.remedy, telling=diagnosis.telling, ratio=diagnosis.declared_ratio,
        repeats_within=diagnosis.repeats, counters=list(diagnosis.counters),
        layer_effects=[{"layer": index, "change": change} for index, change in explain_rows(
            diagnosis, diagnosis.verdict).items()])


def comparison_rows(difference: Difference) -> list[Record]:
    """Rows for a CSV: quantity by part, then its causes; what is not known stays empty."""
    return [line for account in difference.accounts
            for row in (*account.rows, account.total) for line in _part_rows(account, row)]


def _part_rows(account: Account, row: differences.Row) -> Sequence[Record]:
    where: Record = {**list_fields(account, "quantity", "unit"),
                     **list_fields(row, "index", "name", "op")}
    sides = ("first", "second", "gap")
    lines: list[Record] = [where | {"causes": "all", **list_fields(row, *sides), "counter": ""}]
    lines += [where | {"causes": " ".join(line.causes), **list_fields(line, *sides, "counter")}
              for line in row.lines]
    lines.append(where | {"causes": "unexplained", "first": None, "second": None,
                          "gap": row.unexplained, "counter": ""})
    return lines
