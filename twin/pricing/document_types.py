"""Types of the document of a prediction: keys, their types, and what each says."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Len
from typing_extensions import TypedDict

from hwmodels.counts import Counts
from twin.documents import Amount, Cause, Count, Interval, Of, Positive, Says, whole
from twin.network.operators import graph_macs, graph_parameters
from twin.pricing.ledger import explain_time, find_largest

Maybe = Annotated[Interval | None, Says("null at stated prices")]
Energy = Annotated[float | None, Says("null: not known, never zero")]
Share = Annotated[float | None, Says("of 0 to 1, on an accelerator; null: nothing of the kind")]
Bursts = Annotated[list[Count], Len(4, 4), Says("of 1, 2, 4 and 8 beats")]
Clocks = Annotated[dict[str, Count], Says("cycles by clock; those of two clocks are never added")]


class Line(TypedDict):
    """One event's cost by cause and clock."""

    cause: Cause
    clock: str
    operand: NotRequired[Annotated[str | None, Says(
        "when the bill is asked by operand; null: the core itself")]]
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
    alias: Annotated[bool, Says("moves no data")]
    assumed: Annotated[bool, Says("no data stands behind this layer's cost")]
    repeats: NotRequired[Annotated[int, Ge(2), Says(
        "how often it runs in one inference, where it stands in a loop; all other figures are of "
        "them all"), Of(lambda layer: layer.repeats if layer.repeats > 1 else 0)]]
    bound: Annotated[Literal["compute", "memory"] | None, Says("null: nothing to be bound by"),
                     Of(lambda layer: layer.bound or None)]
    kernels: list[str]
    instructions: Annotated[Amount, Of(lambda layer: whole(layer.instructions))]
    miss_rate: Amount | None
    live_bytes: Annotated[Count | None, Says("null: of a program, which plans no arena")]
    epochs: NotRequired[Annotated[list[str], Says("those it ran in")]]
    tasks: NotRequired[Annotated[list[str], Says("those it ran in")]]
    mac_use: NotRequired[Share]
    lane_use: NotRequired[Share]
    dma_use: NotRequired[Share]
    dma_hidden: NotRequired[Share]
    bank_wait: NotRequired[Share]
    loop_share: NotRequired[Share]
    barrier_wait: NotRequired[Share]
    macs_per_byte: NotRequired[Annotated[float, Says("absent in documents of older releases")]]
    largest_cause: NotRequired[Annotated[str, Says("empty for an alias; absent as above")]]
    bill: list[Line]
    counts: Annotated[dict[str, Occurrence], Of(lambda layer: _sum_counts(layer.counts))]


class EpochLine(TypedDict):
    """Time and energy of a task by cause; its cycles stand beside."""

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
    busif: Annotated[str, Of("interface")]
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
    """A memory pool: bytes wanted and given, MB/s while the task's core ran."""

    name: str
    read_bytes: Count
    write_bytes: Count
    mb_per_s: Amount


class Exposed(TypedDict):
    """What the core of a task waited for."""

    resource: str
    cause: str
    npu_cycles: Count


class Task(TypedDict):
    """A task; cycles of the host (MCU) and of the accelerator are different units.

    Keys that are not required are those of one maker's profiler.
    """

    index: Count
    name: str
    kind: str
    layers: Annotated[list[Count], Of("run.task.layers")]
    start_us: float
    time_us: float
    time_interval_us: Maybe
    energy_uj: Annotated[Energy, Of(lambda task: task.bill.energy_uj())]
    pre_cpu_cycles: Annotated[Amount, Of(lambda task: whole(task.pre_cpu_cycles))]
    post_cpu_cycles: Annotated[Amount, Of(lambda task: whole(task.post_cpu_cycles))]
    core_npu_cycles: Annotated[Count, Of("run.core_npu_cycles")]
    compute_cycles: Annotated[Count, Of("run.compute_cycles")]
    max_cycles: NotRequired[Annotated[Count, Says("the compiler's estimate")]]
    bill: list[EpochLine]
    units: Annotated[list[Unit], Of("run.task.units")]
    engines: NotRequired[list[Engine]]
    busif: NotRequired[list[BusInterface]]
    pools: Annotated[list[PoolTraffic], Of("run.pools")]
    npu_cache: NotRequired[Annotated[dict[str, Count], Says("counters of the NPU cache, lines")]]
    pmu: NotRequired[Annotated[dict[str, Count], Says("counters of the NPU's PMU, by its names")]]
    exposed: Annotated[list[Exposed], Says("sums to core_npu_cycles"), Of("run.exposed")]


class Model(TypedDict):
    """The network."""

    name: str
    sha256: Annotated[str, Says(pattern="^[0-9a-f]{64}$")]
    architecture_id: Annotated[str, Says(pattern="^[0-9a-f]{12}$")]
    macs: Annotated[Count, Of(graph_macs)]
    parameters: Annotated[Count | None, Says("null: not known of a program"), Of(graph_parameters)]


class ModelRow(TypedDict):
    """A network of the zoo."""

    name: str
    layers: Annotated[Count, Of(lambda graph: len(graph.layers))]
    macs: Annotated[Count, Of(graph_macs)]
    parameters: Annotated[Count, Of(graph_parameters)]
    input_shapes: Annotated[list[list[Count]], Of(lambda graph: [
        graph.tensors[index].shape for index in graph.inputs])]
    sha256: str


class Supply(TypedDict):
    """What feeds the board; the note says which scale a changed clock took."""

    voltage_v: Positive
    regulator: Literal["ldo", "smps", "none"]
    voltage_scale: str
    note: NotRequired[str]


class ArenaSize(TypedDict):
    """The buffer a program states for its runtime."""

    name: Annotated[str, Says("as code calls it")]
    needed_bytes: Annotated[Count, Says("the number to write: least size that works")]
    total_bytes: Annotated[Count, Says("in use once tensors are allocated")]
    planned_bytes: Annotated[Count, Says("activations and scratch: non-persistent")]
    persistent_bytes: Count
    persistent: Annotated[dict[str, Count], Says("what persistent_bytes is the sum of")]
    input_bytes: Count
    output_bytes: Count
    recorded_bytes: Annotated[Count | None, Says("as TFLM's benchmark tool counts it")]
    unknown: Annotated[list[str], Says("what else is in it, of unknown size")]


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

    overlay: Annotated[str, Of("calibration")]
    basis: Literal["conformal", "borrowed", "model-based"]
    extrapolating: Annotated[list[str], Says("why the data do not support the prediction")]
    unidentified: Annotated[list[str], Says("prices the data could not tell that matter here")]
    doubtful: NotRequired[Annotated[list[str], Says(
        "prices no row identifies by themselves: what they differ by is no finding")]]
    powers: NotRequired[Annotated[str, Says(
        "what energy rests on where no measured energy stands behind it")]]
    version: NotRequired[Annotated[str, Says("of the learnt prices: of others it is another")]]
    by_shape: NotRequired[Annotated[float, Says(
        "share of the time that prices parted by the shape of layers add")]]


class LargestCause(TypedDict):
    """The cause most time goes to, and the kinds of operator that carry most of it."""

    cause: Cause
    share: Annotated[float, Ge(0), Says("of the time, 0 to 1")]
    operators: list[str]
    text: str


class PredictionDocument(TypedDict):
    """An itemised bill of cycles, time and energy of one inference.

    Cycles sum exactly, per clock, from the lines of a layer to the layer to the total. null means
    not known, never zero. Keys that are not required are absent without an accelerator. A reader
    must accept keys it does not know.
    """

    schema: Literal[2]  # 1 had a time with its interval as one object
    kind: Literal["predicted"]
    temperature: Annotated[Literal["warm", "cold"], Says(
        "warm: caches as the previous inference left them; cold: empty")]
    model: Model
    board: Annotated[str, Of("deployment.board.name")]
    runtime: Annotated[str, Says("name@version", pattern="^[^@]+@[^@]+$"),
                       Of("deployment.runtime.identity")]
    clocks_hz: Annotated[dict[str, Positive], Of(lambda prediction: {
        clock.name: whole(clock.frequency_hz) for clock in prediction.board.clocks})]
    supply: Supply
    placement: Annotated[dict[str, str], Says("names of the board's memories"),
                         Of(lambda prediction: name_memories(prediction.deployment))]
    layers: list[Layer]
    pools: NotRequired[list[Pool]]
    npu_energy_uj: NotRequired[Annotated[float | None, Says(
        "of an accelerator and its memories, the host omitted")]]
    npu_energy_interval_uj: NotRequired[Interval | None]
    epochs: NotRequired[Annotated[list[Task], Says("tasks whose maker calls them so")]]
    tasks: NotRequired[list[Task]]
    coverage: NotRequired[Coverage]
    setup: Annotated[Account, Says("once, before the first inference; in no total")]
    total: Total
    ram_bytes: Count
    ram_available_bytes: Count
    ram_parts: Annotated[dict[str, Count], Says("what ram_bytes is the sum of"), Of(
        lambda prediction: {f"{name}_bytes": size
                            for name, size in prediction.deployment.ram_parts.items()})]
    arena: NotRequired[Annotated[ArenaSize, Of("deployment.buffer")]]
    scratch_bytes: Annotated[Count, Says("largest scratch buffer, which arena_bytes has room for"),
                             Of("deployment.placement.scratch_bytes")]
    flash_bytes: Count
    flash_available_bytes: Count
    explanation: Annotated[str, Of(explain_time)]
    largest: NotRequired[Annotated[LargestCause, Says("absent where nothing takes time"),
                                   Of(find_largest)]]
    warnings: list[str]
    calibration: NotRequired[Annotated[Calibration, Says("absent at stated prices"),
                                       Of("certainty")]]


def _sum_counts(counts: Counts) -> dict[str, dict[str, float]]:
    sums: dict[str, list[list[float]]] = {}
    for line in counts.lines:
        occurred, exposed = sums.setdefault(line.event, [[], []])
        occurred.append(line.occurred)
        exposed.append(line.exposed)
    return {event: {"occurred": whole(math.fsum(occurred)), "exposed": whole(math.fsum(exposed))}
            for event, (occurred, exposed) in sums.items()}


def name_memories(deployment: Any) -> dict[str, str]:
    """Return where weights, arena and code are, by the memories' names."""
    return {"weights": deployment.weights_named, "arena": deployment.arena_named,
            "code": deployment.code}
