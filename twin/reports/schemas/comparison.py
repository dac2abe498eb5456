"""The shape of comparisons, of what is published, and of diagnoses."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from twin.reports.schemas.fields import Count, Positive, Share

Predicted = Annotated[dict[str, Any], Field(
    description="of a what-if: the prediction, of prediction.schema.json")]


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


class Told(TypedDict):
    """Causes told together by one counter: "clock" is another frequency, "" what no bill tells."""

    causes: Annotated[list[str], Field(min_length=1)]
    first: int
    second: int | None
    gap: int | None
    counter: str | None


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
    causes: list[Told]


class Quantity(TypedDict):
    """Rows of one quantity, which sum to the total."""

    quantity: Literal["cycles", "instructions", "time", "energy"]
    unit: Literal["cycles", "instructions", "ns", "nJ"]
    rows: list[Row]
    total: Row


class Side(TypedDict):
    """One of two things compared."""

    kind: Literal["predicted", "simulated", "measured", "published"]
    source: Annotated[str, Field(description="file or folder")]
    model: str
    model_sha256: str | None
    architecture_id: str | None
    board: str
    runtime: str
    temperature: Literal["cold", "warm"] | None
    clocks_hz: dict[str, Positive]
    placement: dict[str, str]
    runs: Count
    calibration: str | None
    cycles: Annotated[dict[str, int], Field(
        description="by clock; those of two clocks are never added")]


class Ideal(TypedDict):
    """A resource made ideal, and its share."""

    name: str
    share: int


class Idealised(TypedDict):
    """A view, not the bill: Shapley values of idealised resources; work and shares sum to total."""

    unit: Literal["ns"]
    note: str
    total: int
    work: int
    resources: Annotated[list[Ideal], Field(max_length=6)]


class Fault(TypedDict):
    """A fault that may explain the pattern."""

    kind: str
    name: str
    prior: Share
    probability: Share
    remedy: str
    evidence: list[str]


class Diagnosis(TypedDict):
    """Kinds and faults by probability, with their evidence."""

    schema: Literal[1]
    kind: Literal["diagnosis"]
    quantity: str
    layers: list[Any]
    left_out: NotRequired[Annotated[str, Field(
        description="which layers the pattern leaves out, and why; empty where none")]]
    rests_on: NotRequired[Annotated[list[str], Field(description="which evidence was used")]]
    verdict: str
    verdict_kind: str
    kinds: dict[str, Share]
    errors: dict[str, Any]
    observations: list[Any]
    indistinct: list[Any]
    faults: Annotated[list[Fault], Field(min_length=2)]


class PossibleCause(TypedDict):
    """A cause whose price could explain what no counter tells, in the main account's unit."""

    cause: str
    probability: Annotated[Share, Field(description="that it is the largest part")]
    expected: int
    low: Annotated[int, Field(description="of the 90 % interval of what it accounts for")]
    high: int
    unsure: Annotated[float | None, Field(
        description="of its price before, as a logarithm; null for kernels")]


class Comparison(TypedDict):
    """Two sides beside each other, in whole units.

    Of `twin compare` (comparison), `attribute` (attribution), `diff` (difference) and `whatif`
    (what-if). Every column of the rows sums to the total's. null means not told, never zero.
    Schema 1 had other keys for each verb. A reader must accept keys it does not know.
    """

    schema: Literal[2]
    kind: Literal["comparison", "attribution", "difference", "what-if"]
    first: Side
    second: Side
    findings: Annotated[list[Remark], Field(description="refusals (compared anyway) first")]
    accounts: Annotated[list[Quantity], Field(min_length=1)]
    sizes: list[Size]
    counters: Annotated[list[Told], Field(
        description="events two measurements counted, which nothing prices")]
    notes: list[str]
    limit: NotRequired[Annotated[float | None, Field(
        description="of a difference: the largest increase asked for")]]
    exceeding: NotRequired[Annotated[list[str], Field(
        description="of a difference: what grew by more")]]
    set: NotRequired[Annotated[dict[str, str], Field(description="of a what-if: path to value")]]
    remarks: NotRequired[list[str]]
    probability_faster: NotRequired[Annotated[float | None, Field(
        description="of a what-if: that the second is really faster; null at stated prices")]]
    before: NotRequired[Predicted]
    after: NotRequired[Predicted]
    epochs: NotRequired[Annotated[dict[str, Any], Field(
        description="on an accelerator: every line of the profiler's report")]]
    diagnosis: NotRequired[Diagnosis]
    possible: NotRequired[Annotated[list[PossibleCause], Field(
        description="of an attribution: causes, most probable first")]]
    idealised: NotRequired[Idealised]


class PublishedRow(TypedDict):
    """An open row; the reason says why nothing is predicted."""

    published_by: str
    use: Literal["fit"]
    reason: str | None
    comparison: Annotated[dict[str, Any] | None, Field(description="of comparison.schema.json")]


class Published(TypedDict):
    """Of `twin compare --published`; sealed rows, which only judge, are told together."""

    schema: Literal[2]
    kind: Literal["published"]
    model: str
    board: str
    rows: list[PublishedRow]
    sealed: list[str]


class SeveralPublished(TypedDict):
    """Of `twin compare --published` of several networks or boards."""

    schema: Literal[1]
    kind: Literal["several"]
    results: list[Published]


PublishedOnes = Published | SeveralPublished
"""Of one network on one board, or of several; told apart by `kind`."""
