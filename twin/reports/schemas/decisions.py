"""The shape of what helps to decide: advice, selections, plans, ported boards, caches, time."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from twin.reports.schemas.fields import Amount, Count, Interval, Positive, Share
from twin.reports.schemas.tables import Limits, Study, TableRow

Ends = Annotated[list[float], Field(min_length=2, max_length=2, description="low and high")]
AfterToBefore = Annotated[float, Field(description="after / before: below 1 is less")]


class Changed(TypedDict):
    """A change, or a pair of them, predicted."""

    settings: Annotated[dict[str, str], Field(description="what-if path to value")]
    effort: str
    costs: str
    time_ratio: AfterToBefore | None
    energy_ratio: AfterToBefore | None
    time_ratio_interval: Interval | None
    rests_on: str
    row: TableRow


class Refused(TypedDict):
    """A change that cannot be made."""

    change: str
    reason: str


class Advice(TypedDict):
    """Of `twin advise`."""

    schema: Literal[1]
    kind: Literal["advice"]
    limits: Limits
    met: bool
    before: TableRow
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
    met: bool | None
    reason: str
    penalties: list[Penalty]
    advice: Advice | None
    row: TableRow


class Winner(TypedDict):
    """The choice that is best in a quantity, and how sure that is."""

    metric: str
    board: str
    runtime: str
    probability: Share | None


class Selection(TypedDict):
    """Of `twin select`; winners by model."""

    schema: Literal[1]
    kind: Literal["selection"]
    limits: Limits
    choices: list[Choice]
    winners: dict[str, list[Winner]]
    table: Study


class Run(TypedDict):
    """Micro-benchmarks, and the interval they would leave."""

    run: list[str]
    low_us: float
    high_us: float
    narrowing: float


class Plan(TypedDict):
    """Of `twin plan`."""

    schema: Literal[1]
    kind: Literal["predicted"]
    time_us: Positive
    low_us: float
    high_us: float
    level: Share
    best: Run
    candidates: list[Run]
    silent: Annotated[list[str], Field(description="that would tell nothing of this network")]


class Shipped(TypedDict):
    """What `twin predict` says instead."""

    time_us: Positive
    why_it_differs: str
    time_interval_us: Interval | None


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


class Port(TypedDict):
    """Of `twin port`."""

    schema: Literal[1]
    kind: Literal["predicted"]
    model: str
    board: str
    runtime: str
    physics_us: Positive
    time_us: Positive
    time_interval_us: Interval
    energy_uj: float | None
    energy_interval_uj: Interval | None
    shipped: Shipped
    basis: str
    makeup: Makeup
    extrapolating: list[str]
    behind: list[Behind]
    narrowing: Plan | None


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


class LayerMet(Met):
    """The same of a layer; direct: accesses past every cache."""

    index: Count
    name: str
    op: str
    working_set_bytes: Count
    direct_accesses: Count


class Replacement(TypedDict):
    """Time between the replacement policies a cache may have, where its own is assumed."""

    assumed_of: list[str]
    low: Annotated[float, Field(description="factor on the time, of the best policy")]
    high: Annotated[float, Field(description="of the worst")]
    time_us: dict[str, float]


class SizeMet(TypedDict):
    """Misses of a cache of another size."""

    size_bytes: Count
    ways: Count
    accesses: Count
    misses: Count
    miss_ratio: Share


class Cache(TypedDict):
    """Of `twin cache`."""

    schema: Literal[1]
    kind: Literal["cache"]
    temperature: Literal["warm", "cold"]
    model: str
    board: str
    runtime: str
    placement: Placed
    caches: list[CacheFacts]
    lower: dict[str, Lookups]
    layers: list[LayerMet]
    total: Met
    prices: str
    replacement: Replacement
    sweep: list[SizeMet]


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


class Series(TypedDict):
    """Of `twin diff` of measurements in time order."""

    schema: Literal[1]
    kind: Literal["series"]
    counter: str
    unit: str
    stretches: list[Stretch]
    change: Moved | None
    since: str


class Answers(TypedDict):
    """Time from a buffer to its answer."""

    p50: float
    p95: float
    max: float


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


class Scenario(TypedDict):
    """Of `twin scenario run`."""

    schema: Literal[1]
    kind: Literal["scenario"]
    name: str
    model: str
    board: str
    runtime: str
    governor: str
    duration_us: Positive
    hops: Count
    inferences: Count
    late: Count
    lost: Count
    deadline_us: Amount
    answer_us: Answers | None
    duty: Amount
    mean_mw: Amount | None
    mean_mw_interval: Ends | None
    late_interval: Ends | None
    states: dict[str, State]
    others_uj: dict[str, float]
    hottest_c: float | None
    throttled_us: Amount
    clock_changes: Count
    life_days: float | None
    life_days_interval: Ends | None
    speeds: list[Speed]
    sleep_mw: Amount | None
    wake_up_us: Amount
    notes: list[str]
