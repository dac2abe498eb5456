"""The shape of tables of many configurations, and of what was checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from twin.documents import Amount, Count, Document, Interval, Of, Positive, Says, Share
from twin.studies.results import COLUMNS, FURTHER, list_columns, type_of


class Limits(TypedDict):
    """What rows are held to; null: to none."""

    max_time_us: float | None
    max_energy_uj: float | None
    max_ram_bytes: float | None
    max_flash_bytes: float | None
    max_price_usd: float | None
    max_mean_mw: NotRequired[float | None]
    max_error: NotRequired[float | None]
    max_parameter_bytes: NotRequired[float | None]
    every_us: NotRequired[float | None]
    min_life_days: NotRequired[float | None]


Meets = Literal["yes", "may", "no", "no, may be within"]


def _make_row() -> Any:
    """Return the type of a row: that of each column, and what is said of it."""
    types: dict[str, Any] = {"string": str, "int64": Count | None, "float64": float | None}
    special: dict[str, Any] = {"meets": Meets, "parameter_bytes": Count | None, "wake_up_us": float}
    hints: dict[str, Any] = {}
    for name, text in (COLUMNS | FURTHER).items():
        hint = special.get(name, types[type_of(name)])
        hint = Annotated[hint, Says(text)] if text else hint
        hints[name] = NotRequired[hint] if name in FURTHER else hint
    made = TypedDict("TableRow", hints)  # type: ignore[misc]
    made.__doc__ = (
        "A configuration; keys that begin with `in.` are what was asked for. null: not known.\n\n"
        "What could not be predicted has a reason and no figures.")
    return made


if TYPE_CHECKING:
    TableRow = dict[str, Any]
else:
    TableRow = _make_row()


class Study(Document):
    """Of `twin sweep`, `predict` of several, `study run`, `show`: one row per configuration."""

    kind: Literal["study"]
    limits: Limits
    objectives: list[str]
    axes: list[str]
    rows: Annotated[list[TableRow], Of(lambda table: map(list_columns, table.rows))]


class StudyPair(TypedDict):
    """A configuration in two studies, null where one does not have it; ratios: after / before.

    `moved`: it is in one of them only, or `reason` or one of `figures` differs.
    """

    inputs: Annotated[dict[str, str], Of(lambda pair: next(
        row.inputs for row in pair if row is not None))]
    moved: Annotated[bool, Of("has_moved")]
    figures: Annotated[list[Literal["time_us", "energy_uj", "ram_bytes", "flash_bytes"]], Says(
        "those that differ by 0.05 % or more, or are known in one only")]
    time_ratio: Positive | None
    energy_ratio: Positive | None
    before: Annotated[TableRow | None, Of(lambda pair: pair.before and list_columns(pair.before))]
    after: Annotated[TableRow | None, Of(lambda pair: pair.after and list_columns(pair.after))]


class StudyDiff(Document):
    """Of `twin study diff`."""

    kind: Literal["study_diff"]
    moved: Annotated[Count, Says("rows whose `moved` is true, `gone` and `new` ones among them"),
                     Of(lambda pairs: sum(pair.has_moved for pair in pairs))]
    gone: Annotated[Count, Says("rows the study before has alone"),
                    Of(lambda pairs: sum(pair.after is None for pair in pairs))]
    new: Annotated[Count, Says("rows the study after has alone"),
                   Of(lambda pairs: sum(pair.before is None for pair in pairs))]
    rows: Annotated[list[StudyPair], Of(iter)]


class Influence(TypedDict):
    """What an axis does to a figure; `low` and `high` are the figure at the ends of its range.

    The other axes are at their `middle_value`: of an even number of values the earlier of two.

    `index` is Morris' mean absolute effect, or Sobol's total index; `alone` Sobol's first-order.
    """

    axis: str
    low_value: str
    high_value: str
    middle_value: str
    low: float
    high: float
    index: Amount
    spread: Amount
    alone: float | None


class Sensitivity(TypedDict):
    """Of a model on a board, the axis that matters most first."""

    study: str
    model: str
    board: str
    quantity: str
    method: Literal["morris", "sobol"]
    middle: float
    points: Count
    influences: list[Influence]


class Sensitivities(Document):
    """Of `twin study sensitivity`."""

    kind: Literal["sensitivities"]
    sensitivities: Annotated[list[Sensitivity], Of(iter)]


Studies = Study | StudyDiff | Sensitivities
"""Tables of studies and their findings; `kind` says which."""


class Requirement(TypedDict):
    """One limit, and how it is met."""

    name: str
    unit: str
    predicted: float | None
    limit: float | None
    met: bool
    surely_met: bool | None
    interval: Interval | None
    chance_above: Share | None
    verdict: str


class OfPrediction(Document):
    """What a prediction is of."""

    model: Annotated[str, Of("prediction.graph.name")]
    board: Annotated[str, Of("prediction.board.name")]
    runtime: Annotated[str, Of("prediction.runtime.identity")]


class Check(OfPrediction):
    """Of `twin check`."""

    kind: Literal["check"]
    met: bool
    sure: bool
    requirements: list[Requirement]
    probability: NotRequired[Share | None]
    duty: NotRequired[Annotated[TableRow, Of(lambda found: found.row and list_columns(found.row))]]
