"""The shape of what commands did: measured, learnt, read, built, ran, wrote."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from twin.reports.schemas.fields import Amount, Count, Positive, Share
from twin.reports.schemas.images import Builds, Built, Flashed, Ran, Tuning
from twin.reports.schemas.lists import Board


class Factor(TypedDict):
    """A learnt factor on a price; `doubt` says why it is no finding, null: it is one."""

    price: str
    of: Literal["time", "energy"]
    factor: Positive
    log_sd: Amount
    stated_log_sd: Amount
    doubt: str | None


class Learnt(TypedDict):
    """Prices of one board under one library; null stands for boards not measured."""

    board: str | None
    core: str | None
    runtime: str
    rows: Count
    network_sd: Amount
    row_sd: Amount
    factors: list[Factor]
    log_residuals: dict[str, float]


class Learning(TypedDict):
    """An overlay in short."""

    library: str
    data: list[str]
    rows: Count
    energy_rows: Count
    entries: list[Learnt]


class Calibration(Learning):
    """Of `twin calibrate`."""

    schema: Literal[1]
    kind: Literal["calibration"]


class Calibrations(TypedDict):
    """Of `twin calibrate published`."""

    schema: Literal[1]
    kind: Literal["calibrations"]
    calibrations: list[Learning]


class LayerEnergy(TypedDict):
    """Energy of a layer, null the inference; the true one is within +- `half_width_uj` by 95 %."""

    layer: Count | None
    energy_uj: float
    half_width_uj: Amount
    runs: Count


class PowerStep(TypedDict):
    """What a machine draws while it does one thing."""

    probe: str
    power_mw: float
    sd_mw: Amount


class Energy(TypedDict):
    """Of `twin energy`."""

    schema: Literal[1]
    kind: Literal["energy"]
    folder: str
    layers: list[LayerEnergy]
    power_mean_mw: float
    power_peak_mw: float
    power_sd_mw: Amount
    idle_mw: float | None
    steps: list[PowerStep]
    doubt: str | None
    remarks: list[str]


class Imported(TypedDict):
    """Of `twin import`."""

    schema: Literal[1]
    kind: Literal["imported"]
    folder: str
    measurement_kind: str
    model: str
    board: str
    runtime: str
    runs: Count
    layers: Count
    counters: list[str]
    values: Count
    remarks: list[str]


class Metric(TypedDict):
    """A figure of a layer with where it comes from."""

    name: str
    value: float
    unit: str
    origin: str
    formula: str


class Bottleneck(TypedDict):
    """What holds a layer up; an empty `kind` is not known."""

    kind: str
    severity: float
    evidence: str
    origin: str


class LayerMeasured(TypedDict):
    """A layer, null the inference, in units of the network's `counter`; time null: no clock."""

    layer: Count | None
    name: str
    op: str
    p50: float
    p95: float
    time_us: float | None
    share: float
    bottleneck: Bottleneck
    metrics: list[Metric]


class Percentiles(TypedDict):
    """Of the inference over its runs."""

    runs: Count
    minimum: float
    p50: float
    p90: float
    p95: float
    p99: float
    maximum: float


class NetworkMeasured(TypedDict):
    """A network at one temperature of its caches."""

    temperature: str | None
    measurement_kind: str
    board: str
    runtime: str
    counter: str
    percentiles: Percentiles
    overhead_share: float
    inference: LayerMeasured
    layers: list[LayerMeasured]


class Measured(TypedDict):
    """Of `twin measure`; the warm network is the last."""

    schema: Literal[1]
    kind: Literal["measured"]
    folder: str
    virtual: str | None
    model: str
    networks: list[NetworkMeasured]


class Machine(TypedDict):
    """Of `twin measure --plan`: costs in counts of `counter`."""

    schema: Literal[1]
    kind: Literal["machine"]
    folder: str
    name: str
    counter: str
    measurement_kind: str
    memories: list[dict[str, Any]]
    code: list[dict[str, Any]]
    macs: dict[str, float]
    fed_macs: float | None
    branch: float | None
    call: float | None
    stated: dict[str, dict[str, Any]] | None


class Written(TypedDict):
    """Of `twin report`, `guidelines`, `bundle`, `transform -o` and exports: the files.

    `met` of a report says whether the limits hold; null where none was asked about.
    """

    schema: Literal[1]
    kind: Literal["written"]
    files: list[str]
    met: bool | None


class Change(TypedDict):
    """A value that is not what it was."""

    name: str
    before: str
    now: str


class AgreementRow(TypedDict):
    """A run asked again: `same` to nine digits; the first of `differing` values that are not."""

    run: str
    verb: str
    same: bool
    differing: Count
    differences: list[Change]
    versions: list[Change]


class Agreements(TypedDict):
    """Of `twin reproduce`."""

    schema: Literal[1]
    kind: Literal["agreements"]
    agreements: list[AgreementRow]


class SessionsCompared(TypedDict):
    """Of `twin sessions compare`; `difference`: of two predictions, as `twin diff` writes it."""

    schema: Literal[1]
    kind: Literal["sessions_compared"]
    asked: list[Change]
    agreement: AgreementRow
    difference: Annotated[dict[str, Any] | None, Field(description="of comparison.schema.json")]


class Removed(TypedDict):
    """Of `twin sessions clean`; `removed` is false without --yes: they would be."""

    schema: Literal[1]
    kind: Literal["removed"]
    removed: bool
    folders: list[str]


class NewBoard(TypedDict):
    """Of `twin boards new`; `assumed` are paths of facts that are guesses."""

    schema: Literal[1]
    kind: Literal["new_board"]
    file: str
    assumed: list[str]
    board: Board


class LearntKernel(TypedDict):
    """A kernel read in programs; `error`: of a layer's instructions, root mean square share."""

    op: str
    dtype: str
    function: str
    layers: Count
    shapes: Count
    code_bytes: Count
    error: Amount


class LearntRuntime(TypedDict):
    """Of `twin runtimes learn`."""

    schema: Literal[1]
    kind: Literal["learnt"]
    file: str
    runtime: str
    core: str
    isa: str
    sources: list[str]
    kernels: list[LearntKernel]
    notes: list[str]


class Serving(TypedDict):
    """The first line of `twin serve`; `open_wide`: other machines are answered, too."""

    schema: Literal[1]
    kind: Literal["serving"]
    address: str
    open_wide: bool


class Right(TypedDict):
    """Right answers of a network; `low` and `high`: 90 % interval of their share."""

    right: Count
    samples: Count
    share: Share
    low: Share
    high: Share
    by: str
    notes: list[str]


class Accuracy(TypedDict):
    """Of `twin accuracy`; `after` changes, null: none were asked for."""

    schema: Literal[1]
    kind: Literal["accuracy"]
    model: str
    before: Right
    after: Right | None


Outcomes = (Calibration | Calibrations | Energy | Imported | Measured | Machine | Built | Ran
            | Builds | Flashed | Written | Agreements | SessionsCompared | Removed | NewBoard
            | LearntRuntime | Serving | Accuracy | Tuning)
"""What commands did, told apart by `kind`."""
