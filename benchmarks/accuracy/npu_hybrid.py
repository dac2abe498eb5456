"""Epochs the host takes part in: what dispatching and stepping cost, and their engines' part."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.accuracy.npu_rows import Row, Verdict, run_task, spread_of
from hwmodels.prices import CLEAN_CYCLES
from hwmodels.schedule import Npu, Task, Transfer, UnitWork
from tests.oracles.neural_art_epochs import MeasuredEpoch

LINE_BYTES = 32
"""Of the host's data cache."""


def check_software(measured: Sequence[MeasuredEpoch], npu: Npu) -> list[Verdict]:
    """Epochs on the host: what dispatching them costs; their work is not the NPU's."""
    verdicts = []
    for kind in ("sw", "hybrid"):
        rows = tuple(Row(epoch=row.epoch.name, quantity="dispatch host cycles",
                         published=row.pre_cpu_cycles + row.core_cpu_cycles,
                         predicted=npu.hand_over.software_cycles)
                     for row in measured if row.epoch.kind == kind)
        verdicts.append(Verdict(
            what=f"dispatch of {kind} epochs, host cycles", n=len(rows),
            reached=f"median {spread_of(row.error for row in rows)[0]:.1%}", target="reported",
            met=None, fitted="the median of these rows and of the other kind", rows=rows))
    return verdicts


def check_hybrid(measured: Sequence[MeasuredEpoch], npu: Npu) -> Verdict:
    """The engines' part of hybrid epochs: one in, one out, in the bursts that were counted."""
    rows = tuple(Row(epoch=row.epoch.name, quantity="core NPU cycles",
                     published=float(row.core_npu_cycles or 0),
                     predicted=run_task(rebuild_hybrid(row), npu).core_npu_cycles)
                 for row in measured if row.epoch.kind == "hybrid" and row.core_npu_cycles)
    return Verdict(
        what="core NPU cycles of hybrid epochs, from counted bytes and bursts", n=len(rows),
        reached=f"median {spread_of(row.error for row in rows)[0]:.1%}", target="reported",
        met=None, rows=rows,
        fitted="two bytes a cycle of an engine, to three of these rows; of one that reads runs, "
               "to the fourth: in sample")


def rebuild_hybrid(row: MeasuredEpoch) -> Task:
    """Return a hybrid epoch with its two engines; a burst of one beat in many ends a run."""
    assert row.read_bursts is not None and row.write_bursts is not None
    wanted = min(row.read_bytes or 0, row.write_bytes or 0)
    engines = []
    for index, (way, bursts) in enumerate((("in", row.read_bursts), ("out", row.write_bursts))):
        runs = bursts[0] if bursts[0] > sum(bursts) // 10 else 0
        engines.append(Transfer(
            channel=index, direction=way, port="busif0", pool="npuRAM4", bytes=wanted,
            pattern="strided" if runs else "contiguous", run_bytes=wanted // runs if runs else 0))
    return replace(row.epoch, transfers=tuple(engines), units=(UnitWork(kind="NULL"),))


def check_stepping(measured: Sequence[MeasuredEpoch]) -> Verdict:
    """The host's part of hybrid epochs, each predicted by a constant learnt from the others.

    Besides the constant it cleans or invalidates the lines of what is read and written, which the
    compiler's compute cycles give: as many as bytes go in and out, halved.
    """
    rows = [row for row in measured if row.epoch.kind == "hybrid"]
    lines = [CLEAN_CYCLES * 2 * row.compute_cycles / LINE_BYTES for row in rows]
    host = [float(row.pre_cpu_cycles + row.core_cpu_cycles + row.post_cpu_cycles) for row in rows]
    said = []
    for place, row in enumerate(rows):
        rest = [total - own for n, (total, own) in enumerate(zip(host, lines, strict=True))
                if n != place]
        said.append(Row(epoch=row.epoch.name, quantity="host cycles", published=host[place],
                        predicted=statistics.median(rest) + lines[place]))
    median, high = spread_of(row.error for row in said)
    constant = statistics.median(total - own for total, own in zip(host, lines, strict=True))
    return Verdict(
        what="host cycles of hybrid epochs besides their engines' epochs, leave-one-out",
        n=len(said), reached=f"median {median:.1%}, 90th percentile {high:.1%}; constant of all "
                             f"{constant:,.0f}",
        target="reported", met=None, rows=tuple(said), fitted="the constant, to the other rows")
