"""What an accelerator takes of a network: coverage, pools, and what stays on the host."""

from __future__ import annotations

from hwmodels.quantities import format_energy, list_by_key, list_first, significant
from twin.pricing.ledger import percentages
from twin.pricing.prediction import Prediction
from twin.reports.tables.parts import Pairs

_LISTED = 8
"""Layers listed by index."""


def coverage_pairs(prediction: Prediction) -> Pairs:
    """Return what an accelerator covers, where its buffers are, and what stays on the host."""
    coverage = prediction.coverage
    if coverage is None:
        return []
    npu, host, hand_over = (int(share) for share in percentages(
        [coverage.npu_us, coverage.host_us, coverage.hand_over_us]))
    return [("offload", f"{coverage.npu_layers} layers on the NPU, {coverage.host_layers} on the "
                        f"host in {len(prediction.tasks)} {prediction.compiler.task_name}s; "
                        f"of the time {npu} % NPU, {host} % host, {hand_over} % hand-over"),
            *_pool_pairs(prediction), *_host_pairs(prediction), *_energy_pairs(prediction)]


def _energy_pairs(prediction: Prediction) -> Pairs:
    """Energy of the accelerator and its memories, at what its prices are unsure by."""
    deployment = prediction.deployment
    found = deployment.target.estimate_energy(deployment.board, prediction.bill)
    if found is None:
        return []
    value_uj, interval = found
    macs = sum(layer.macs for layer, why in zip(prediction.layers, deployment.plan.reasons,
                                                strict=True) if not why)
    per_mac = f", {significant(value_uj * 1e6 / macs, 2)} pJ/MAC of its {macs:,}" if macs else ""
    return [("NPU energy", f"{format_energy(value_uj)}, "
                           f"{interval.describe(format_energy)}{per_mac}; the host's is apart")]


def _pool_pairs(prediction: Prediction) -> Pairs:
    plan, npu = prediction.deployment.plan, prediction.board.accelerator
    return [("pools", ", ".join(f"{name} {used:,} of {npu.pool(name).size_bytes:,} bytes"
                                for name, used in plan.used))]


def _host_pairs(prediction: Prediction) -> Pairs:
    """Layers on the host by operator and reason, the first few by index."""
    found = list_by_key(
        ((layer.op, reason), str(layer.index)) for layer, reason in zip(
            prediction.layers, prediction.deployment.plan.reasons, strict=True) if reason)
    return [("on the host" if place == 0 else "",
             f"{op}: {reason}; layer{'s' if len(where) > 1 else ''} "
             + list_first(where, _LISTED))
            for place, ((op, reason), where) in enumerate(found.items())]
