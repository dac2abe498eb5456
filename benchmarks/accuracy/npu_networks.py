"""Whole networks on the N6: predicted beside published, leave one family out; printed as Markdown.

    python -m benchmarks.accuracy.npu_networks

Rows of `use="fit"` only, one tool version, activations inside the chip. The twin's prices come from
profiled epochs of another network, datasheets and public logs; here nothing is fitted but, for the
line that says so, one host cost per epoch, and the constant of the baseline, each on the other
families.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from benchmarks.accuracy.npu_rebuilt import COMPILED, compare_compute_cycles
from benchmarks.accuracy.npu_snn import (
    PHASES,
    compare_dense,
    compare_elementwise,
    compare_phases,
)
from benchmarks.accuracy.report import write_table
from calibration.datasets import PublishedRow, published_rows
from calibration.datasets.tables import read_csv
from hwmodels.frozen import frozen
from twin.attribution.published import build_published, deploy_row
from twin.deployment.deployment import Deployment
from twin.network.graph import Graph
from twin.network.operators import graph_macs
from twin.pricing.inference import predict
from twin.pricing.prediction import Prediction

VERSION = "neural-art@3.0.0"
GMACS_PER_S, MB_PER_S = 53.0, 370.0
"""The baseline's rates: best seen, and the external flash's, over the published N6 rows."""

FAMILIES = {"st_efficientnet": "st_efficientnet_lc", "fdmobilenet": "fdmobilenet",
            "st_fdmobilenet": "fdmobilenet", "mobilenet": "mobilenet_v1",
            "ssd": "ssd_mobilenet_v1", "preresnet": "preresnet", "st_resnet": "st_resnet"}
"""Family by the start of a network's name: those that differ in width or classes are one."""


@frozen
class Case:
    """A published network with what is said of it, in milliseconds.

    Parameters
    ----------
    epochs : int
        Of the prediction.
    npu_share, host_share : float
        Of the predicted time: epochs' cores; the host's operators. The rest is hand-over.
    """

    name: str
    family: str
    measured_ms: float
    predicted_ms: float
    macs: int
    weights_bytes: int
    epochs: int
    npu_share: float
    host_share: float


def list_cases(version: str = VERSION, *, twice: bool = False) -> tuple[Case, ...]:
    """Predict every judged row of a tool version, or those that two versions list alike."""
    return tuple(_make_case(row, build_published(str(row.model)))
                 for row in _judged(version, twice=twice))


def predict_judged(version: str = VERSION) -> list[tuple[str, float, Prediction]]:
    """Return name, published milliseconds and prediction of every row, listed twice or not."""
    return [(str(row.model), float(row.latency_ms or 0),
             predict(deploy_row(row, build_published(str(row.model)))))
            for twice in (False, True) for row in _judged(version, twice=twice)]


def family_of(name: str) -> str:
    """Return the family of a published network."""
    return next((family for start, family in FAMILIES.items() if name.startswith(start)), name)


def _judged(version: str, *, twice: bool = False) -> list[PublishedRow]:
    raw = read_csv("stm32_zoo/measured.csv")
    return [row for row in published_rows(use="fit")
            if row.dataset == "stm32_zoo" and row.runtime == version and row.latency_ms
            and row.model is not None and row.precision == "int8"
            and ("listed_twice" in row.flags) == twice
            and float(raw[row.line - 2]["ext_ram_kib"] or 0) == 0]


def _make_case(row: PublishedRow, graph: Graph) -> Case:
    deployment = deploy_row(row, graph)
    prediction = predict(deployment)
    coverage = prediction.coverage
    assert coverage is not None
    name = str(row.model)
    return Case(
        name=name.partition("__")[0], family=family_of(name),
        measured_ms=float(row.latency_ms or 0), predicted_ms=prediction.time_us / 1e3,
        macs=graph_macs(graph), weights_bytes=_streamed_bytes(deployment),
        epochs=len(prediction.tasks), npu_share=coverage.shares[0], host_share=coverage.shares[1])


def _streamed_bytes(deployment: Deployment) -> int:
    return sum(engine.bytes for step in deployment.plan.steps if step.task is not None
               for engine in step.task.transfers if engine.operand == "weights")


Predictor = Callable[[Sequence[Case], Case], float]
"""(cases of the other families, case) -> milliseconds."""


def say_as_is(others: Sequence[Case], case: Case) -> float:
    """The twin, nothing fitted."""
    return case.predicted_ms


def add_epoch_cost(others: Sequence[Case], case: Case) -> float:
    """The twin and a cost per epoch: least squares of relative errors on the other families."""
    above = sum(c.epochs / c.measured_ms * (1 - c.predicted_ms / c.measured_ms) for c in others)
    below = sum((c.epochs / c.measured_ms) ** 2 for c in others)
    return case.predicted_ms + case.epochs * above / below


def say_baseline(others: Sequence[Case], case: Case) -> float:
    """MACs / 53 GMAC/s + bytes / 370 MB/s + a constant: least squares of relative errors."""
    above = sum((c.measured_ms - _baseline(c)) / c.measured_ms**2 for c in others)
    below = sum(1 / c.measured_ms**2 for c in others)
    return _baseline(case) + above / below


def flatter_baseline(cases: Sequence[Case]) -> list[tuple[Case, float]]:
    """The baseline with its constant taken from the very cases it is judged on."""
    constant = statistics.median(c.measured_ms - _baseline(c) for c in cases)
    return [(case, _baseline(case) + constant) for case in cases]


def _baseline(case: Case) -> float:
    return case.macs / (GMACS_PER_S * 1e6) + case.weights_bytes / (MB_PER_S * 1e3)


PREDICTORS: dict[str, Predictor] = {
    "twin, nothing fitted": say_as_is,
    "twin + a cost per epoch": add_epoch_cost,
    "MACs / 53 GMAC/s + bytes / 370 MB/s + constant": say_baseline,
}


def leave_family_out(cases: Sequence[Case], predictor: Predictor) -> list[tuple[Case, float]]:
    """Predict every case from the cases of other families; milliseconds."""
    return [(case, predictor([c for c in cases if c.family != case.family], case))
            for case in cases]


def high_error_pct(said: Iterable[tuple[Case, float]]) -> float:
    """Absolute error that nine of ten are below, in per cent of the measured time."""
    return float(np.percentile([100 * abs(ms / case.measured_ms - 1) for case, ms in said], 90))


def median_error_pct(said: Iterable[tuple[Case, float]]) -> float:
    """Median absolute error in per cent of the measured time."""
    return statistics.median(100 * abs(ms / case.measured_ms - 1) for case, ms in said)


def worst_error_pct(said: Iterable[tuple[Case, float]]) -> float:
    """Largest absolute error in per cent of the measured time."""
    return max(100 * abs(ms / case.measured_ms - 1) for case, ms in said)


def make_report() -> str:
    """Return the tables as Markdown."""
    parts = []
    for version in (VERSION, "neural-art@2.0.0"):
        cases = list_cases(version)
        families = len({case.family for case in cases})
        parts.append(f"**{version}: {len(cases)} networks of {families} families**")
        sayings = {name: leave_family_out(cases, predictor)
                   for name, predictor in PREDICTORS.items()}
        sayings["the same, its constant in sample"] = flatter_baseline(cases)
        parts.append(write_table(("predictor", "median error", "90 %", "worst"), [
            (name, f"{median_error_pct(said):.1f} %", f"{high_error_pct(said):.1f} %",
             f"{worst_error_pct(said):.1f} %")
            for name, said in sayings.items()]))
        parts.append(write_table(
            ("network", "measured, ms", "twin, ms", "ratio", "epochs", "NPU cores", "host",
             "hand-over"), [_case_row(case) for case in cases]))
        extra = list_cases(version, twice=True)
        if extra:
            parts.append("Rows that the zoo lists alike under 2.2.0, not in the medians above:")
            parts.append(write_table(("network", "measured, ms", "twin, ms", "ratio", "epochs",
                                 "NPU cores", "host", "hand-over"),
                                [_case_row(case) for case in extra]))
    parts += [_narrow_weights(), _compute_cycles(), _phases()]
    return "\n\n".join(parts) + "\n"


def _case_row(case: Case) -> tuple[str, ...]:
    rest = 1 - case.npu_share - case.host_share
    return (case.name, f"{case.measured_ms:.2f}", f"{case.predicted_ms:.2f}",
            f"{case.predicted_ms / case.measured_ms:.2f}", str(case.epochs),
            f"{100 * case.npu_share:.0f} %", f"{100 * case.host_share:.0f} %",
            f"{100 * rest:.0f} %")


def _narrow_weights() -> str:
    """Placement and width of the weights, which way they move the twin and the published rows."""
    rows = {row.model_name: row for row in published_rows(use="fit")}
    wide = rows["st_efficientnetlcv1_224_tfs"]
    deployment = deploy_row(wide, build_published(str(wide.model)))
    base = predict(deployment).time_us / 1e3
    lines = [("weights 8 to 4 bits", {"placement.weight_bits": 4}),
             ("weights from flash to NPU RAM", {"placement.weights": "npu_ram"}),
             ("weights from flash to external RAM", {"placement.weights": "hyperRAM"}),
             ("activations from NPU RAM to external RAM", {"placement.arena": "psram"})]
    shown = [(what, f"{base:.2f}", f"{predict(deployment.replace(change)).time_us / 1e3:.2f}")
             for what, change in lines]
    mixed = rows["st_efficientnetlcv1_224_tfs_qdq_w4_26.1%_w8_73.9%"]
    note = (f"Published for {wide.model_name}: {wide.latency_ms} ms with 8-bit weights, "
            f"{mixed.latency_ms} ms with 26.1 % of them in 4 bits.")
    return "\n\n".join([f"**What moves {wide.model_name}**",
                        write_table(("change", "before, ms", "after, ms"), shown), note])


def _compute_cycles() -> str:
    """Our compute cycles beside the compiler's, for a network rebuilt from its epochs' bytes."""
    pairs = compare_compute_cycles()
    ours, theirs = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    exact = sum(a == b for a, b in pairs)
    errors = [100 * abs(a / b - 1) for a, b in pairs]
    return (f"**Compute cycles of {COMPILED} by our own chaining**\n\n{len(pairs)} hardware "
            f"epochs with the same layers as the compiler's: {exact} exact, median error "
            f"{statistics.median(errors):.1f} %, worst {max(errors):.1f} %, sum {ours:,} for "
            f"{theirs:,} ({100 * (ours / theirs - 1):+.1f} %).")


def _phases() -> str:
    """Host cycles of single epochs of tools 1.1.0 beside one-layer graphs of ours."""
    rows = [(what, str(count), *(f"{theirs[phase]:,.0f} / {ours[phase]:,.0f}" for phase in PHASES))
            for what, count, theirs, ours in compare_phases()]
    dense = [(what, str(count), f"{theirs:,.0f}", f"{ours:,.0f}", f"{ours / theirs:.2f}")
             for what, count, theirs, ours in (*compare_dense(), *compare_elementwise())]
    return "\n\n".join([
        "**Host cycles of single epochs, tools 1.1.0 / twin 3.0.0**",
        write_table(("epoch", "published", *PHASES), rows),
        "**Cycles of layers on the host, library 10.1.0 / `st-edge-ai@3.0.0` as stated**",
        write_table(("layer", "published", "cycles", "twin", "twin / published"), dense)])


if __name__ == "__main__":
    print(make_report(), end="")
