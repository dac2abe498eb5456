"""The shape of a prediction's document."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from twin.reports.schemas.fields import Amount, Bursts, Cause, Clocks, Count, Interval, Positive

Maybe = Annotated[Interval | None, Field(description="null at stated prices")]
Energy = Annotated[float | None, Field(description="null: not known, never zero")]


class Line(TypedDict):
    """One event's cost by cause and clock."""

    cause: Cause
    clock: str
    operand: NotRequired[Annotated[str | None, Field(
        description="when the bill is asked by operand; null: the core itself")]]
    cycles: Count
    time_us: float
    energy_uj: Energy


class Account(TypedDict):
    """What something costs, and the lines that sum to it."""

    time_us: float
    energy_uj: Energy
    cycles: Clocks
    bill: list[Line]


class Total(Account):
    """What one inference costs, with its intervals; set-up is not in it."""

    time_interval_us: Maybe
    energy_interval_uj: Maybe


class Occurrence(TypedDict):
    """How often an event happened, and how much of that nothing hid."""

    occurred: Amount
    exposed: Amount


class Layer(TypedDict):
    """A layer; its cycles are of its own clock, the one most of its time passes in."""

    index: Count
    name: str
    op: str
    output_shape: list[Count]
    macs: Count
    bytes_moved: Count
    cycles: Count
    clock: str
    cycles_by_clock: Clocks
    time_us: float
    time_interval_us: Maybe
    energy_uj: Energy
    energy_interval_uj: Maybe
    alias: Annotated[bool, Field(description="moves no data")]
    assumed: Annotated[bool, Field(description="no data stands behind this layer's cost")]
    repeats: NotRequired[Annotated[int, Field(
        ge=2, description="how often it runs in one inference, where it stands in a loop; all "
                          "other figures are of them all")]]
    bound: Annotated[Literal["compute", "memory"] | None, Field(
        description="null: nothing to be bound by")]
    kernels: list[str]
    instructions: Amount
    miss_rate: Amount | None
    live_bytes: Count
    epochs: NotRequired[Annotated[list[str], Field(description="those it ran in")]]
    bill: list[Line]
    counts: dict[str, Occurrence]


class EpochLine(TypedDict):
    """Time and energy of an epoch by cause; its cycles stand beside."""

    cause: str
    clock: str
    time_us: float
    energy_uj: Energy


class Unit(TypedDict):
    """Processing units of a kind; ops are other than multiply-accumulates."""

    kind: str
    count: Count
    macs: Count
    ops: Count


class Engine(TypedDict):
    """A stream engine: bytes in whole beats of the interface, active cycles of the NPU."""

    index: Count
    direction: Literal["in", "out"]
    busif: str
    pool: str
    bytes: Count
    buffer_bytes: Count
    active_cycles: Count
    bursts: Bursts


class BusInterface(TypedDict):
    """A bus interface: bytes in whole beats, bursts by length."""

    name: str
    read_bytes: Count
    write_bytes: Count
    read_bursts: Bursts
    write_bursts: Bursts


class PoolTraffic(TypedDict):
    """A memory pool: bytes wanted and given, MB/s while the epoch's core ran."""

    name: str
    read_bytes: Count
    write_bytes: Count
    mb_per_s: Amount


class Exposed(TypedDict):
    """What the core of an epoch waited for."""

    resource: str
    cause: str
    npu_cycles: Count


class Epoch(TypedDict):
    """An epoch; cycles of the host (MCU) and of the accelerator are different units."""

    index: Count
    name: str
    kind: Literal["hw", "hybrid", "sw", "copy"]
    layers: list[Count]
    start_us: float
    time_us: float
    time_interval_us: Maybe
    energy_uj: Energy
    pre_cpu_cycles: Amount
    post_cpu_cycles: Amount
    core_npu_cycles: Count
    compute_cycles: Count
    max_cycles: Annotated[int, Field(ge=0, description="the compiler's estimate")]
    bill: list[EpochLine]
    units: list[Unit]
    engines: list[Engine]
    busif: list[BusInterface]
    pools: list[PoolTraffic]
    npu_cache: Annotated[dict[str, Count], Field(description="counters of the NPU cache, lines")]
    exposed: Annotated[list[Exposed], Field(description="sums to core_npu_cycles")]


class Model(TypedDict):
    """The network."""

    name: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    architecture_id: Annotated[str, Field(pattern="^[0-9a-f]{12}$")]
    macs: Count
    parameters: Annotated[int | None, Field(ge=0, description="null: not known of a program")]


class Supply(TypedDict):
    """What feeds the board; the note says which scale a changed clock took."""

    voltage_v: Positive
    regulator: Literal["ldo", "smps", "none"]
    voltage_scale: str
    note: NotRequired[str]


class Pool(TypedDict):
    """How full a memory pool of an accelerator is."""

    name: str
    used_bytes: Count
    size_bytes: Count


class Coverage(TypedDict):
    """What part an accelerator covers, by layers and by time."""

    npu_layers: Count
    host_layers: Count
    npu_us: float
    host_us: float
    hand_over_us: float


class Calibration(TypedDict):
    """Learnt prices behind the intervals."""

    overlay: str
    basis: Literal["conformal", "borrowed", "model-based"]
    extrapolating: Annotated[list[str], Field(
        description="why the data do not support the prediction")]
    unidentified: Annotated[list[str], Field(
        description="prices the data could not tell that matter here")]
    doubtful: NotRequired[Annotated[list[str], Field(
        description="prices no row tells by themselves: what they differ by is no finding")]]
    powers: NotRequired[Annotated[str, Field(
        description="what energy rests on where no measured energy stands behind it")]]


class Prediction(TypedDict):
    """An itemised bill of cycles, time and energy of one inference.

    Cycles sum exactly, per clock, from the lines of a layer to the layer to the total. null means
    not known, never zero. Keys that are not required are absent without an accelerator. A reader
    must accept keys it does not know.
    """

    schema: Literal[2]
    kind: Literal["predicted"]
    temperature: Annotated[Literal["warm", "cold"], Field(
        description="warm: caches as the previous inference left them; cold: empty")]
    model: Model
    board: str
    runtime: Annotated[str, Field(pattern="^[^@]+@[^@]+$", description="name@version")]
    clocks_hz: dict[str, Positive]
    supply: Supply
    placement: Annotated[dict[str, str], Field(description="names of the board's memories")]
    layers: list[Layer]
    pools: NotRequired[list[Pool]]
    npu_energy_uj: NotRequired[Annotated[float | None, Field(
        description="of an accelerator and its memories, the host left out")]]
    npu_energy_interval_uj: NotRequired[Interval | None]
    epochs: NotRequired[list[Epoch]]
    coverage: NotRequired[Coverage]
    setup: Annotated[Account, Field(
        description="once, before the first inference; in no total")]
    total: Total
    ram_bytes: Count
    ram_available_bytes: Count
    ram_parts: Annotated[dict[str, Count], Field(description="what ram_bytes is the sum of")]
    scratch_bytes: Annotated[int, Field(
        ge=0, description="largest scratch buffer, which arena_bytes has room for")]
    flash_bytes: Count
    flash_available_bytes: Count
    calibration: NotRequired[Annotated[Calibration, Field(
        description="absent at stated prices")]]
    explanation: str
    warnings: list[str]
