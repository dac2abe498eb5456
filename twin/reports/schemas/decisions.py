"""The shape of what helps to decide: advice, selections, plans, ported boards, caches, time."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any, Literal

from annotated_types import Len
from typing_extensions import TypedDict

from hwmodels.files import JsonObject
from twin.documents import Amount, Count, Document, Interval, Of, Positive, Says, Share
from twin.pricing.document_types import name_memories
from twin.reports.schemas.tables import Limits, Meets, OfPrediction, Study, TableRow
from twin.studies.results import list_columns
from twin.studies.scenario.simulation import STATES

Ends = Annotated[list[float], Len(2, 2), Says("low and high")]
RowOf = Annotated[TableRow, Of(lambda one: list_columns(one.row))]
AfterToBefore = Annotated[float, Says("after / before: below 1 is less")]


class Changed(TypedDict):
    """A change, or a pair of them, predicted."""

    settings: Annotated[dict[str, str], Says("what-if path to value")]
    effort: str
    costs: str
    time_ratio: AfterToBefore | None
    energy_ratio: AfterToBefore | None
    time_ratio_interval: Interval | None
    rests_on: str
    row: RowOf


class Refused(TypedDict):
    """A change that cannot be made."""

    change: str
    reason: str


class Advice(Document):
    """Of `twin advise`."""

    kind: Literal["advice"]
    limits: Limits
    met: bool
    before: Annotated[TableRow, Of(lambda advice: list_columns(advice.before))]
    best: Changed | None
    changes: list[Changed]
    pairs: list[Changed]
    refused: list[Refused]


class Penalty(TypedDict):
    """Points a quantity takes from a score."""

    name: str
    points: float
    reason: str


class Choice(TypedDict):
    """A network on a board, under the library that suits it best."""

    score: float | None
    met: Annotated[bool | None, Of("row.met")]
    meets: Annotated[Meets, Of("row.meets")]
    reason: str
    penalties: list[Penalty]
    advice: Advice | None
    setting: str
    row: RowOf


class Winner(TypedDict):
    """The choice that is best in a quantity, and how sure that is."""

    metric: str
    board: Annotated[str, Of("row.board")]
    runtime: Annotated[str, Of("row.runtime")]
    probability: Share | None
    unknown: Annotated[list[str], Says("boards that may have less, which is not known")]


class Selection(Document):
    """Of `twin select`; winners by model."""

    kind: Literal["selection"]
    limits: Limits
    choices: list[Choice]
    winners: Annotated[dict[str, list[Winner]], Of(lambda selection: {
        model: selection.list_winners(model) for model in selection.networks})]
    table: Study


class Run(TypedDict):
    """Micro-benchmarks, and the interval they would leave."""

    run: Annotated[list[str], Of("names")]
    low_us: Annotated[float, Of("time_us.low")]
    high_us: Annotated[float, Of("time_us.high")]
    narrowing: float


class Plan(Document):
    """Of `twin plan`."""

    kind: Literal["predicted"]
    time_us: Annotated[Positive, Of("prediction.time_us")]
    low_us: Annotated[float, Of("certainty.time_us.low")]
    high_us: Annotated[float, Of("certainty.time_us.high")]
    level: Annotated[Share, Of("certainty.time_us.level")]
    best: Run
    candidates: Annotated[list[Run], Of(lambda ranking: (*ranking.single, *ranking.runs))]
    silent: Annotated[list[str], Says("that would tell nothing of this network")]


class Shipped(TypedDict):
    """What `twin predict` says instead."""

    time_us: Annotated[Positive, Of("shipped.time_us")]
    why_it_differs: Annotated[str, Of("difference")]
    time_interval_us: Annotated[Interval | None, Of("shipped.certainty.time_us")]


class Makeup(TypedDict):
    """Shares of the variance of log time, summing to 1."""

    boards: float
    parameters: float
    model: float


class Behind(TypedDict):
    """Rows a prediction rests on."""

    board: str
    kind: str
    core: str
    runtime: str
    rows: Count
    networks: list[str]


class Port(OfPrediction):
    """Of `twin port`."""

    kind: Literal["predicted"]
    physics_us: Positive
    time_us: Annotated[Positive, Of("prediction.time_us")]
    time_interval_us: Annotated[Interval, Of("prediction.certainty.time_us")]
    energy_uj: Annotated[float | None, Of("prediction.energy_uj")]
    energy_interval_uj: Annotated[Interval | None, Of("prediction.certainty.energy_uj")]
    shipped: Annotated[Shipped, Of(lambda ported: ported)]
    basis: Annotated[str, Of("prediction.certainty.basis")]
    makeup: Makeup
    extrapolating: Annotated[list[str], Of("prediction.certainty.extrapolating")]
    behind: list[Behind]
    narrowing: Annotated[Plan | None, Of("ranking")]


class Placed(TypedDict):
    """Where weights, arena and code are."""

    weights: str
    arena: str
    code: str


class CacheFacts(TypedDict):
    """A data cache; `below`: what serves its misses."""

    name: str
    size_bytes: Count
    line_bytes: Count
    ways: Count
    replacement: str
    below: str | None


class Lookups(TypedDict):
    """Of a level below."""

    accesses: Count
    misses: Count


class Met(TypedDict):
    """What accesses met in the caches."""

    accesses: Count
    misses: Count
    miss_rate: Share
    write_backs: Count


class LayerMet(TypedDict):
    """The same of a layer; direct: accesses past every cache."""

    index: Count
    name: str
    op: str
    accesses: Count
    misses: Count
    miss_rate: Share
    write_backs: Count
    working_set_bytes: Count
    direct_accesses: Annotated[Count, Of("direct")]


class Replacement(TypedDict):
    """Time between the replacement policies a cache may have, where its own is assumed."""

    assumed_of: Annotated[list[str], Of("caches")]
    low: Annotated[float, Says("factor on the time, of the best policy")]
    high: Annotated[float, Says("of the worst")]
    time_us: dict[str, float]


class SizeMet(TypedDict):
    """Misses of a cache of another size."""

    size_bytes: Count
    ways: Count
    accesses: Count
    misses: Count
    miss_ratio: Share


class Cache(Document):
    """Of `twin cache`."""

    kind: Literal["cache"]
    temperature: Annotated[Literal["warm", "cold"], Of("locality.temperature")]
    model: Annotated[str, Of("locality.deployment.graph.name")]
    board: Annotated[str, Of("locality.deployment.board.name")]
    runtime: Annotated[str, Of("locality.deployment.runtime.identity")]
    placement: Annotated[Placed, Of(lambda report: name_memories(report.locality.deployment))]
    caches: Annotated[list[CacheFacts], Of("locality.caches")]
    lower: Annotated[dict[str, Lookups], Of("locality.lower")]
    layers: Annotated[list[LayerMet], Of("locality.layers")]
    total: Annotated[Met, Of("locality")]
    prices: str
    replacement: Annotated[Replacement, Of("policies")]
    sweep: Annotated[list[SizeMet], Of("points")]


class Stretch(TypedDict):
    """One measurement; ratio: of its median to the first one's."""

    label: str
    runs: Count
    median: float
    ratio: float


class Moved(TypedDict):
    """Where the level moved; shift: of the logarithm."""

    position: Count
    shift: float
    probability: Share


class Series(Document):
    """Of `twin diff` of measurements in time order."""

    kind: Literal["series"]
    counter: str
    unit: str
    stretches: list[Stretch]
    change: Moved | None
    since: str
    holds: bool


class Answers(TypedDict):
    """Time from a buffer to its answer, of all of them by size."""

    p50: Annotated[float, Of(lambda times: times[len(times) // 2])]
    p95: Annotated[float, Of(lambda times: times[int(0.95 * (len(times) - 1))])]
    max: Annotated[float, Of(itemgetter(-1))]


class State(TypedDict):
    """What the device spent in a state."""

    time_us: Amount
    energy_uj: Amount


class Speed(TypedDict):
    """What it does at a clock; a slowdown for each other master."""

    clock_hz: Positive
    inference_us: Positive
    energy_uj: Amount | None
    run_mw: Amount | None
    idle_mw: Amount | None
    slowdowns: list[float]


def list_states(outcome: Any) -> JsonObject:
    """Return the time and energy spent in each state, in the order of states."""
    run = outcome.run
    return {state: {"time_us": run.time_us[state], "energy_uj": run.energy_uj.get(state, 0.0)}
            for state in STATES if state in run.time_us}


class Scenario(Document):
    """Of `twin scenario run`."""

    kind: Literal["scenario"]
    name: Annotated[str, Of("scenario.name")]
    model: Annotated[str, Of("machine.prediction.graph.name")]
    board: Annotated[str, Of("machine.prediction.board.name")]
    runtime: Annotated[str, Of("machine.prediction.runtime.identity")]
    governor: Annotated[str, Of("scenario.governor")]
    duration_us: Annotated[Positive, Of("run.duration_us")]
    hops: Annotated[Count, Of(lambda outcome: len(outcome.run.answers_us) + outcome.run.lost)]
    inferences: Annotated[Count, Of("run.inferences")]
    late: Annotated[Count, Of("run.late")]
    lost: Annotated[Count, Of("run.lost")]
    deadline_us: Annotated[Amount, Of("scenario.allowed_us")]
    answer_us: Annotated[Answers | None, Of(lambda outcome: sorted(outcome.run.answers_us) or None)]
    duty: Annotated[Amount, Of("run.duty")]
    mean_mw: Annotated[Amount | None, Of("run.mean_mw")]
    mean_mw_interval: Annotated[Ends | None, Of("mean_ends_mw")]
    late_interval: Annotated[Ends | None, Of("missed_ends")]
    states: Annotated[dict[str, State], Of(list_states)]
    others_uj: Annotated[dict[str, float], Of(lambda outcome: {
        name: energy for name in ("sensor", "other masters")
        if (energy := outcome.run.energy_uj.get(name))})]
    hottest_c: Annotated[float | None, Of("run.hottest_c")]
    throttled_us: Annotated[Amount, Of("run.throttled_us")]
    clock_changes: Annotated[Count, Of("run.clock_changes")]
    life_days: float | None
    life_days_interval: Annotated[Ends | None, Of("life_ends_days")]
    speeds: Annotated[list[Speed], Of("machine.speeds")]
    sleep_mw: Annotated[Amount | None, Of("machine.sleep_mw")]
    wake_up_us: Annotated[Amount, Of("machine.wake_up_us")]
    notes: Annotated[list[str], Of(lambda outcome: [
        *filter(None, [outcome.loss, outcome.warming]), *outcome.machine.notes])]
