"""One side of a comparison: predicted, measured, simulated or published, in whole units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from calibration.measurement.quality import Finding
from hwmodels.frozen import frozen
from hwmodels.quantities import Ends, sum_by_key

UNITS = {"cycles": "cycles", "instructions": "instructions", "time": "ns", "energy": "nJ"}
"""Quantities two sides are compared in, and their unit: whole numbers, so that sums are exact."""


@frozen
class Part:
    """A layer, a task, or the whole network, on one side.

    Parameters
    ----------
    index
        In the model; None is the whole network.
    name, op
        As the side has them; "" is not known.
    amounts
        By quantity, in its unit; one that is not known is omitted.
    causes
        By quantity: cause -> amount, summing to `amounts`; causes of tasks name their clock, as
        "mac@npu". Empty for a measurement.
    counts
        Counters of a measurement (medians), events and instructions of a prediction.
    moves
        Whether it does anything; logs leave out layers that are another name of their input.
    """

    index: int | None
    name: str = ""
    op: str = ""
    amounts: Mapping[str, int]
    causes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    moves: bool = True


@frozen
class Work:
    """What identifies a network without a hash; unknown fields are omitted.

    Parameters
    ----------
    operators
        Of the layers, in order.
    macs, operations
        Of an inference; operations count a multiply-accumulate as two.
    """

    operators: tuple[str, ...] = ()
    layer_macs: Mapping[int, float] = field(default_factory=dict)
    macs: float | None = None
    operations: float | None = None
    input_elements: tuple[int, ...] | None = None


@frozen
class Side:
    """A prediction, a measurement or a published row, as it is compared.

    Parameters
    ----------
    kind
        "predicted", "measured", "simulated" or "published".
    source
        File or folder, or "" for one made in memory.
    part
        What parts are: "layer", or what tasks of the accelerator are called.
    parts
        In order.
    clock
        Of cycles: the core's.
    sizes
        "ram_bytes" and "flash_bytes", where known.
    interval_us
        Of the time of one inference, where the prediction has one.
    calibration
        Overlay behind a prediction, "" without.
    spread
        p95 / p50 - 1 of a measurement's main counter; 0 where there is one run.
    runs
        Of a measurement; 0 for what was computed.
    work
        What identifies the network where no hash does.
    energy_interval_uj
        As `interval_us`.
    level
        Of both intervals.
    cycles
        Of one inference, by clock; those of two clocks are never added.
    doubtful
        Learnt prices that are no findings by themselves.
    unsteady
        Drift of a measurement's runs, and two kinds of them: no one figure stands for them.
    """

    kind: str
    source: str
    model: str
    model_sha256: str | None
    architecture_id: str | None
    board: str
    runtime: str
    temperature: str | None
    clocks_hz: Mapping[str, float]
    placement: Mapping[str, str]
    part: str
    parts: tuple[Part, ...]
    whole: Part
    clock: str = "cpu"
    environment: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    interval_us: Ends | None = None
    calibration: str = ""
    spread: float = 0.0
    runs: int = 0
    work: Work = field(default_factory=Work)
    energy_interval_uj: Ends | None = None
    level: float | None = None
    cycles: Mapping[str, int] = field(default_factory=dict)
    doubtful: tuple[str, ...] = ()
    unsteady: tuple[Finding, ...] = ()

    @property
    def predicted(self) -> bool:
        """Whether it is a prediction."""
        return self.kind == "predicted"

    @property
    def scheduled(self) -> bool:
        """Whether its parts are tasks of an accelerator."""
        return self.part != "layer"

    @property
    def counted(self) -> bool:
        """Whether it was read from samples or rows, whoever made them; else it was computed."""
        return self.runs > 0

    @property
    def numbered(self) -> bool:
        """Whether its parts are numbered as the model's: by a model, or by our own firmware."""
        return not self.counted or self.runtime == "firmware"

    @property
    def is_program(self) -> bool:
        """Whether it is the machine code of a program, whose layers are functions."""
        return self.runtime.startswith("program@")

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        return self.source or f"{self.model} on {self.board}"


def sum_parts(parts: Iterable[Part]) -> Part:
    """Add parts to the whole network; a quantity one of them lacks is not known."""
    parts = tuple(parts)
    names = [name for name in UNITS if all(name in part.amounts for part in parts)]
    return Part(
        index=None, amounts={name: sum(part.amounts[name] for part in parts) for name in names},
        causes={name: sum_by_key(line for part in parts
                                 for line in part.causes.get(name, {}).items()) for name in names},
        counts=sum_by_key(pair for part in parts for pair in part.counts.items()))
