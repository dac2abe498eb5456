"""The shape of what commands did: measured, learnt, read, built, ran, wrote."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typing_extensions import TypedDict

from hwmodels.files import JsonObject
from twin.documents import Amount, Count, Document, Of, Says, Share, fill
from twin.reports.schemas.images import Builds, Built, Flashed, Ran, Tuning
from twin.reports.schemas.learning import Calibration, Calibrations, Learning
from twin.reports.schemas.lists import Board

if TYPE_CHECKING:
    from calibration.measurement.measurement import Measurement


NORMAL_95 = 1.96
"""Half a 95 % interval of a normal distribution, in standard deviations."""


def of_power(name: str) -> Of:
    """Return where a power comes from: the median of a column of what a meter saw."""
    return Of(lambda found: found.measurement.percentile(name, 50))


def list_energies(measured: Measurement) -> list[JsonObject]:
    """Return the energy of each layer, then of the inference."""
    return [{"layer": layer, "energy_uj": measured.percentile("energy", 50, layer),
             "half_width_uj": NORMAL_95 * measured.percentile("energy_sd", 50, layer),
             "runs": measured.count("energy", layer)} for layer in (*measured.layers, None)]


class LayerEnergy(TypedDict):
    """Energy of a layer, null the inference; the true one is within +- `half_width_uj` by 95 %."""

    layer: Count | None
    energy_uj: float
    half_width_uj: Amount
    runs: Count


class PowerStep(TypedDict):
    """What a machine draws while it does one thing."""

    probe: Annotated[str, Of("probe.name")]
    power_mw: float
    sd_mw: Amount


class Energy(Document):
    """Of `twin energy`."""

    kind: Literal["energy"]
    folder: str
    layers: Annotated[list[LayerEnergy], Of(lambda found: list_energies(found.measurement))]
    power_mean_mw: Annotated[float, of_power("power_mean")]
    power_peak_mw: Annotated[float, of_power("power_peak")]
    power_sd_mw: Annotated[Amount, of_power("power_sd")]
    idle_mw: float | None
    doubt: str | None
    remarks: list[str]
    steps: Annotated[list[PowerStep], Of(lambda found: found.steps or ())]


class Imported(Document):
    """Of `twin import`."""

    kind: Literal["imported"]
    folder: str
    measurement_kind: Annotated[str, Of("measurement.header.kind")]
    model: Annotated[str, Of("measurement.header.model")]
    board: Annotated[str, Of("measurement.header.board")]
    runtime: Annotated[str, Of("measurement.header.runtime")]
    runs: Annotated[Count, Of(lambda found: len(found.measurement.runs))]
    layers: Annotated[Count, Of(lambda found: len(found.measurement.layers))]
    counters: Annotated[list[str], Of("measurement.counters")]
    values: Annotated[Count, Of(lambda found: len(found.measurement.samples))]
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

    layer: Annotated[Count | None, Of("index")]
    name: str
    op: str
    p50: float
    p95: float
    time_us: float | None
    share: float
    bottleneck: Bottleneck
    metrics: Annotated[list[Metric], Of(lambda layer: layer.metrics.values())]


class Percentiles(TypedDict):
    """Of the inference over its runs."""

    runs: Annotated[Count, Of("count")]
    minimum: float
    p50: float
    p90: float
    p95: float
    p99: float
    maximum: float


class NetworkMeasured(TypedDict):
    """A network at one temperature of its caches."""

    temperature: Annotated[str | None, Of("measurement.header.temperature")]
    measurement_kind: Annotated[str, Of("measurement.header.kind")]
    board: Annotated[str, Of("measurement.header.board")]
    runtime: Annotated[str, Of("measurement.header.runtime")]
    counter: str
    percentiles: Annotated[Percentiles, Of(lambda one: one.measurement.summarise(one.counter))]
    overhead_share: float
    inference: Annotated[LayerMeasured, Of("whole")]
    layers: list[LayerMeasured]


class Measured(Document):
    """Of `twin measure`; the warm network is the last."""

    kind: Literal["measured"]
    folder: str
    virtual: str | None
    model: Annotated[str, Of("graph.name")]
    networks: list[NetworkMeasured]


class Machine(Document):
    """Of `twin measure --plan`: costs in counts of `counter`."""

    kind: Literal["machine"]
    folder: str
    name: str
    measurement_kind: Annotated[str, Of("machine.kind")]
    counter: Annotated[str, Of("machine.counter")]
    memories: Annotated[list[JsonObject], Of(lambda found: [
        asdict(one) for one in found.machine.memories])]
    code: Annotated[list[JsonObject], Of(lambda found: [asdict(one) for one in found.machine.code])]
    macs: Annotated[dict[str, float], Of("machine.macs")]
    fed_macs: Annotated[float | None, Of("machine.fed_macs")]
    branch: Annotated[float | None, Of("machine.branch")]
    call: Annotated[float | None, Of("machine.call")]
    stated: Annotated[dict[str, JsonObject] | None, Of(lambda found: found.stated and {
        name: asdict(one) for name, one in found.stated.items()})]


class Written(Document):
    """Of `twin report`, `guidelines`, `bundle`, `transform -o` and exports: the files.

    `met` of a report says whether the limits hold; null where none was asked about.
    """

    kind: Literal["written"]
    files: list[str]
    met: bool | None


class Change(TypedDict):
    """A value that is not what it was."""

    name: str
    before: str
    now: str


class AgreementRow(TypedDict):
    """A run asked again: `same` to nine digits; the first of `differing` values that are not.

    What hardware measured is not made again: its `same` is null.
    """

    run: Annotated[str, Of("name")]
    verb: str
    same: Annotated[bool | None, Of("is_same")]
    differences: list[Change]
    differing: Annotated[Count, Of("count")]
    versions: list[Change]


class Agreements(Document):
    """Of `twin reproduce`."""

    kind: Literal["agreements"]
    agreements: list[AgreementRow]


class SessionsCompared(Document):
    """Of `twin sessions compare`; `difference`: of two predictions, as `twin diff` writes it."""

    kind: Literal["sessions_compared"]
    asked: list[Change]
    agreement: AgreementRow
    difference: Annotated[JsonObject | None, Says("of comparison.schema.json")]


class CheckRow(TypedDict):
    """Something that was looked for."""

    name: str
    found: Annotated[str, Says("its version or place; empty where it is not there or usable")]
    advice: Annotated[str, Says("what to type where it is not")]
    needed: Annotated[bool, Says("whether the board cannot be measured without it")]


class Step(TypedDict):
    """What to type, and what it does."""

    type: str
    does: str


class Checkup(Document):
    """Of `twin doctor`."""

    kind: Literal["checkup"]
    board: str | None
    ready: Annotated[bool, Of("is_ready")]
    checks: list[CheckRow]
    steps: list[Step]


class Removed(Document):
    """Of `twin sessions clean`; `removed` is false without --yes: they would be."""

    kind: Literal["removed"]
    removed: Annotated[bool, Of("really")]
    folders: list[str]


class NewBoard(Document):
    """Of `twin boards new`; `assumed` are paths of facts that are guesses."""

    kind: Literal["new_board"]
    file: Annotated[str, Of("path")]
    assumed: Annotated[list[str], Of(lambda made: [
        fact.path for fact in made.board.facts if fact.kind == "assumed"])]
    board: Board


class LearntKernel(TypedDict):
    """A kernel read in programs; `error`: of a layer's instructions, root mean square share."""

    op: str
    dtype: str
    function: Annotated[str, Of("name")]
    layers: Count
    shapes: Annotated[Count, Of("distinct")]
    code_bytes: Count
    error: Annotated[Amount, Of("residual")]


class CheckedLayer(TypedDict):
    """A layer of a program; `predicted`: its instructions by programs of other networks."""

    network: str
    index: Count
    op: str
    instructions: Count
    predicted: Amount | None
    error: float | None
    stands_in: bool


class LearntRuntime(Document):
    """Of `twin runtimes learn`."""

    kind: Literal["learnt"]
    file: Annotated[str, Of("path")]
    runtime: Annotated[str, Of("runtime.identity")]
    core: Annotated[str, Of("runtime.learnt.core")]
    isa: Annotated[str, Of("runtime.learnt.isa")]
    sources: Annotated[list[str], Of("runtime.learnt.sources")]
    kernels: Annotated[list[LearntKernel], Of("runtime.learnt.kernels")]
    checked: Annotated[list[CheckedLayer], Of("runtime.learnt.checked")]
    notes: list[str]


class Serving(Document):
    """The first line of `twin serve`; `open_wide`: other machines are answered, too."""

    kind: Literal["serving"]
    address: str
    open_wide: bool


class Right(TypedDict):
    """Right answers of a network; `low` and `high`: 90 % interval of their share."""

    right: Count
    samples: Count
    low: Share
    high: Share
    by: str
    notes: list[str]
    share: Share


class Accuracy(Document):
    """Of `twin accuracy`; `after` changes, null: none were asked for."""

    kind: Literal["accuracy"]
    model: str
    before: Right
    after: Right | None


Outcomes = (Calibration | Calibrations | Energy | Imported | Measured | Machine | Built | Ran
            | Builds | Flashed | Written | Agreements | SessionsCompared | Removed | NewBoard
            | LearntRuntime | Serving | Accuracy | Tuning | Checkup)
"""What commands did; `kind` says which."""

ROWS = {"Overlay": ("calibrations", Learning), "Agreement": ("agreements", AgreementRow)}
"""Lists of what commands did by the class of what is in it: their kind, and the type of a row."""


def compare_sessions(found: Any) -> JsonObject:
    """Write how two kept runs differ: in what was asked, in what came out, and by cause."""
    from twin.attribution.document import difference_document

    return fill(SessionsCompared, found, difference=None if found.difference is None else
                difference_document(found.difference, None))
