"""Layers stay lowered as long as their graph does, whatever the caches and clocks."""

from __future__ import annotations

import pytest

import twin
from twin.deployment import core


@pytest.fixture
def lowered(monkeypatch):
    """Names of layers as they are lowered, nothing of any graph being kept before."""
    core._LOWERED.clear()
    done, run = [], core._run_lowering

    def note(lowering, site, *rest):
        done.append(site.layer.name)
        return run(lowering, site, *rest)

    monkeypatch.setattr(core, "_run_lowering", note)
    return done


def test_another_cache_lowers_nothing_again(lowered) -> None:
    deployment = twin.deploy("kws", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn")
    first = core.lower_network(deployment)
    count = len(lowered)
    assert count == sum(bool(kernels) for kernels in first)
    for changes in ({"caches.l1d.size_bytes": "8KiB"}, {"caches.l1d.replacement": "lru"},
                    {"clocks.cpu.frequency_hz": "96MHz"}):
        again = core.lower_network(deployment.replace(changes))
        assert len(lowered) == count
        assert all(kernel is before for group, old in zip(again, first, strict=True)
                   for kernel, before in zip(group, old, strict=True))


def test_other_addresses_or_another_library_are_lowered_anew(lowered) -> None:
    deployment = twin.deploy("kws", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn")
    first = core.lower_network(deployment)
    count = len(lowered)
    moved = core.lower_network(deployment.replace({"placement.arena": "sram"}))
    assert len(lowered) == 2 * count
    assert {operand.memory for group in moved for kernel in group for operand in kernel.operands
            } != {operand.memory for group in first for kernel in group
                  for operand in kernel.operands}
    core.lower_network(deployment.replace({"runtime": "tflm-reference"}))
    assert len(lowered) > 2 * count


def test_what_is_kept_of_a_graph_is_bounded(lowered, monkeypatch) -> None:
    monkeypatch.setattr(core, "MOST_LOWERED", 20)
    deployment = twin.deploy("kws", "nucleo_h7a3zi_q", runtime="tflm-cmsis-nn")
    for arena in ("dtcm", "sram", "dtcm"):
        core.lower_network(deployment.replace({"placement.arena": arena}))
        assert len(core._LOWERED[deployment.executed]) <= 20
    assert lowered
