"""The shape of what commands did: measured, learnt, read, built, ran, wrote."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from twin.reports.shapes.common import Amount, Count, Positive


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


class ImageSizes(TypedDict):
    """What an image takes."""

    code_bytes: Count
    weights_bytes: Count
    flash_bytes: Count
    arena_bytes: Count
    ram_bytes: Count


class ImageBuilt(TypedDict):
    """An image with its sizes beside the predicted ones."""

    image: str
    port: str
    compiler: str
    sizes: ImageSizes
    predicted: ImageSizes


class Built(ImageBuilt):
    """Of `twin firmware build`."""

    schema: Literal[1]
    kind: Literal["built"]


class LayerRun(TypedDict):
    """A layer of a run; `equal`: its output is bit for bit the arithmetic's, null: float."""

    layer: Count
    op: str
    name: str
    count: Amount
    equal: bool | None


class ImageRun(TypedDict):
    """A run: counts of `counter`, least over the runs."""

    counter: str
    simulated: bool
    right: bool
    total: Amount
    outside: float
    setup: Amount
    layers: list[LayerRun]


class Ran(ImageRun):
    """Of `twin firmware run`."""

    schema: Literal[1]
    kind: Literal["run"]


class BuildRun(TypedDict):
    """An image and its run."""

    built: ImageBuilt
    run: ImageRun


class Builds(TypedDict):
    """Of `twin firmware compare`."""

    schema: Literal[1]
    kind: Literal["builds"]
    builds: list[BuildRun]


class Flashed(TypedDict):
    """Of `twin firmware flash`."""

    schema: Literal[1]
    kind: Literal["flashed"]
    message: str


class Written(TypedDict):
    """Of `twin report`, `guidelines`, `bundle` and exports: the files.

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


Outcomes = (Calibration | Calibrations | Energy | Imported | Measured | Machine | Built | Ran
            | Builds | Flashed | Written | Agreements)
"""What commands did, told apart by `kind`."""
