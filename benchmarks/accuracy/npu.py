"""NPU epochs beside what compiler and profiler published: `python -m benchmarks.accuracy.npu`.

Fitted, and only to rows that are not judged (each row, with any the compiler's columns do not tell
from it, is held out of the fit that judges it): four numbers of the machine (start, gap after a
write burst, latency of NPU RAM, weights ahead of a convolution) and the eight of the hand-over.
What a value written into a unit costs is the board file's, from other logs.
Which streams scatter is inferred from the compiler's columns. The document's epoch is of another
network, tool and log; nothing is fitted to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.npu_hybrid import check_hybrid, check_software, check_stepping
from benchmarks.accuracy.npu_rows import Row, Verdict, run_task, spread_of
from hwmodels.board.file import load_board
from hwmodels.board.npu import HandOver
from hwmodels.schedule import BURST_BEATS, Npu, TaskRun
from tests.oracles.neural_art_epochs import (
    MeasuredEpoch,
    read_compiled_epochs,
    read_document_epoch,
    read_measured_epochs,
)
from twin.runtimes.neural_art.profile import describe_runs, estimate_max_cycles

BOARD = "stm32n6570_dk"
UNIT_PRICES = ("CONV_ACC", "ARITH_ACC")
"""Units the judged network uses; the hand-over of others is assumed."""

WEIGHTS_AHEAD_BYTES = (0, 128, 256, 512)
"""What is tried; the epochs hold at most 480 bytes of weights, so more makes no difference."""

Vector = NDArray[np.float64]


def check_npu() -> tuple[Verdict, ...]:
    """Judge the NPU model on every published table of epochs.

    Returns
    -------
    tuple of Verdict
        Each with its rows, the same on every run.
    """
    npu = load_npu()
    measured = read_measured_epochs()
    hardware = [row for row in measured if row.epoch.kind == "hw"]
    runs = [run_task(row.epoch, fit_machine(_without(hardware, n), npu))
            for n, row in enumerate(hardware)]
    return (*check_compiler(npu), check_core(hardware, runs), *check_bytes(hardware, runs),
            check_bursts(hardware, runs), *check_document(npu), *check_hand_over(hardware, npu),
            *check_software(measured, npu), check_hybrid(measured, npu), check_stepping(measured))


def load_npu() -> Npu:
    """Return the NPU of the board, with the numbers of its file."""
    npu = load_board(BOARD).npu
    assert npu is not None  # the board file describes it
    return npu


def fit_machine(rows: Sequence[MeasuredEpoch], npu: Npu) -> Npu:
    """Return the machine with its four fitted numbers learnt from measured epochs.

    Parameters
    ----------
    rows : sequence of MeasuredEpoch
        Hardware epochs.
    npu : Npu
        Start of the fit.

    Returns
    -------
    Npu
        Soft-L1 least squares of the logarithm of core cycles, scale 3 %, for each number of
        weights ahead; the best of them.
    """
    from scipy.optimize import least_squares

    best, least = npu, float("inf")
    for ahead_bytes in WEIGHTS_AHEAD_BYTES:
        start = replace(npu, weight_ahead_bytes=ahead_bytes)

        def residuals(x: Vector, start: Npu = start) -> list[float]:
            machine = set_machine(start, x)
            return [np.log(run_task(row.epoch, machine).core_npu_cycles
                           / float(row.core_npu_cycles or 1)) for row in rows]

        found = least_squares(residuals, [900.0, 0.2, 10.0], loss="soft_l1", f_scale=0.03,
                              x_scale=[100.0, 0.1, 2.0], diff_step=0.03,
                              bounds=([0, 0, 0], [5000, 2, 100]))
        if found.cost < least:
            best, least = set_machine(start, found.x), found.cost
    return best


def set_machine(npu: Npu, x: Vector) -> Npu:
    """Return the machine with start, write gap and latency of NPU RAM replaced."""
    start, gap, latency = (float(value) for value in x)
    return replace(
        npu, start_cycles=round(start),
        interfaces=tuple(replace(part, write_gap_cycles=gap) for part in npu.interfaces),
        pools=tuple(replace(pool, read_latency_cycles=latency)
                    if pool.name.startswith("npuRAM") else pool for pool in npu.pools))


def fit_hand_over(rows: Sequence[MeasuredEpoch], npu: Npu) -> HandOver:
    """Return the hand-over learnt from measured epochs: non-negative, relative least squares."""
    from scipy.optimize import nnls

    features = np.array([_features(row) for row in rows])

    def solve(values: Vector, known: Vector | float = 0.0) -> list[float]:
        return [float(x) for x in nnls(features / values[:, None],
                                       np.ones(len(values)) - known / values)[0]]

    loads = [npu.hand_over.pre_coefficient_cycles * sum(
        work.coefficients for work in row.epoch.units) for row in rows]
    pre = solve(np.array([row.pre_cpu_cycles for row in rows], dtype=float), np.array(loads))
    post = solve(np.array([row.post_cpu_cycles for row in rows], dtype=float))
    return replace(
        npu.hand_over, pre_cycles=pre[0], pre_engine_cycles=pre[1],
        pre_unit_cycles=tuple(zip(UNIT_PRICES, pre[2:], strict=True)),
        post_cycles=post[0], post_engine_cycles=post[1],
        post_unit_cycles=tuple(zip(UNIT_PRICES, post[2:], strict=True)))


def _features(row: MeasuredEpoch) -> list[float]:
    units = dict.fromkeys(UNIT_PRICES, 0)
    for work in row.epoch.units:
        units[work.kind] += work.count
    return [1.0, len(row.epoch.transfers), *units.values()]


def _without(rows: Sequence[MeasuredEpoch], left_out: int) -> list[MeasuredEpoch]:
    """Rows without one, and without those that are the same epoch but for its name."""
    same = replace(rows[left_out].epoch, name="")
    return [row for row in rows if replace(row.epoch, name="") != same]


def check_compiler(npu: Npu) -> list[Verdict]:
    """The compiler's own estimate, from bytes, operations and compute cycles."""
    rows = []
    for compiled in read_compiled_epochs():
        machine = replace(npu, sums_directions=compiled.sums_directions)
        rows.append(Row(epoch=f"{compiled.model} {compiled.epoch.name}", quantity="max cycles",
                        published=compiled.max_cycles,
                        predicted=estimate_max_cycles(compiled.epoch, machine)))
    exact = sum(row.predicted == row.published for row in rows)
    return [Verdict(
        what="compiler's max cycles of compiled hardware epochs", n=len(rows),
        reached=f"{exact} exact, {exact / len(rows):.1%}", target="95 % exact",
        met=exact >= 0.95 * len(rows), rows=tuple(rows),
        fitted="nothing; pool-cycle columns are not read; the rule's structure was found on them")]


def check_core(hardware: Sequence[MeasuredEpoch], runs: Sequence[TaskRun]) -> Verdict:
    """Core NPU cycles, each row predicted by a fit without it, beside a x max cycles + b."""
    rows = []
    for n, (row, run) in enumerate(zip(hardware, runs, strict=True)):
        others = _without(hardware, n)
        slope, constant = np.polyfit([other.max_cycles for other in others],
                                     [float(other.core_npu_cycles or 0) for other in others], 1)
        rows.append(Row(epoch=row.epoch.name, quantity="core NPU cycles",
                        published=float(row.core_npu_cycles or 0), predicted=run.core_npu_cycles,
                        baseline=slope * row.max_cycles + constant))
    median, high = spread_of(row.error for row in rows)
    base = spread_of(float(row.baseline or 0) / row.published - 1 for row in rows)
    return Verdict(
        what="core NPU cycles of measured hardware epochs, leave-one-out", n=len(rows),
        reached=f"median {median:.1%}, 90th percentile {high:.1%}; a x max + b leave-one-out: "
                f"{base[0]:.1%}, {base[1]:.1%}",
        target="median < 5 %, 90th percentile < 12 %, better than a x max cycles + b",
        met=median < 0.05 and high < 0.12 and median < base[0] and high < base[1],
        fitted="start, write gap, latency of NPU RAM, weights ahead, to the other rows; the "
               "structure of the model was chosen with these rows in sight",
        rows=tuple(rows))


def check_bytes(hardware: Sequence[MeasuredEpoch], runs: Sequence[TaskRun]) -> list[Verdict]:
    """Bytes over the interfaces, in whole beats."""
    verdicts = []
    for way, limit in (("read", 0.05), ("write", 0.12)):
        rows = []
        for row, run in zip(hardware, runs, strict=True):
            published = getattr(row, f"{way}_bytes")
            if published:
                rows.append(Row(
                    epoch=row.epoch.name, quantity=f"bus {way} bytes", published=published,
                    predicted=sum(part[f"{way}_bytes"]
                                  for part in describe_runs([run])[0]["busif"])))
        total = sum(row.predicted for row in rows) / sum(row.published for row in rows) - 1
        median, _ = spread_of(row.error for row in rows)
        inside = sum(abs(row.error) <= limit for row in rows)
        verdicts.append(Verdict(
            what=f"bus {way} bytes of measured hardware epochs", n=len(rows),
            reached=f"sum {total:+.1%}, median {median:.1%}, {inside} of {len(rows)} rows within",
            target=f"within {limit:.0%}", met=abs(total) <= limit and median <= limit,
            fitted="nothing; the inference of scattered streams was written with the counted "
                   "bursts in sight", rows=tuple(rows)))
    return verdicts


def check_bursts(hardware: Sequence[MeasuredEpoch], runs: Sequence[TaskRun]) -> Verdict:
    """Bursts by length, summed over epochs."""
    rows = []
    for way in ("read", "write"):
        counted = [(getattr(row, f"{way}_bursts"), run) for row, run
                   in zip(hardware, runs, strict=True) if row.read_bursts is not None]
        for position, beats in enumerate(BURST_BEATS):
            rows.append(Row(
                epoch="all", quantity=f"{way} bursts of {beats} beats",
                published=sum(bursts[position] for bursts, _ in counted),
                predicted=sum(part[f"{way}_bursts"][position] for described in describe_runs(
                    run for _, run in counted) for part in described["busif"])))
    listing = "; ".join(f"{row.quantity.replace(' bursts of ', ' ')}: {row.predicted:.0f} of "
                        f"{row.published:.0f}" for row in rows)
    return Verdict(what="burst histogram of measured hardware epochs, ours of counted",
                   n=len(hardware), reached=listing, target="reported", met=None,
                   fitted="nothing", rows=tuple(rows))


def check_document(npu: Npu) -> list[Verdict]:
    """Epoch 186 of the profiler's document, with the numbers of the board file."""
    row = read_document_epoch()
    described = describe_runs([run := run_task(row.epoch, npu)])[0]
    engines = {engine["index"]: engine["active_cycles"] for engine in described["engines"]}
    fitted = "nothing to it; the machine's numbers to the 15 epochs of another network"
    core = Row(epoch=row.epoch.name, quantity="core NPU cycles",
               published=float(row.core_npu_cycles or 0), predicted=run.core_npu_cycles)
    active = [Row(epoch=row.epoch.name, quantity=f"engine {index} active cycles",
                  published=cycles, predicted=engines[index])
              for index, cycles in row.active_cycles]
    weights = next(one for one in active if one.quantity.startswith("engine 4 "))
    rest = spread_of(one.error for one in active)
    exact = Row(epoch=row.epoch.name, quantity="max cycles", published=row.max_cycles,
                predicted=described["max_cycles"])
    return [
        Verdict(what="document's epoch 186, compiler's max cycles", n=1,
                reached=f"{exact.predicted:.0f} of {exact.published:.0f}", target="exact",
                met=exact.predicted == exact.published, fitted="nothing", rows=(exact,)),
        Verdict(what="document's epoch 186, core NPU cycles", n=1, fitted=fitted, rows=(core,),
                reached=f"{core.predicted:.0f} of {core.published:.0f}, {core.error:+.1%}",
                target="within 10 %", met=abs(core.error) <= 0.10),
        Verdict(what="document's epoch 186, engine 4 (octoFlash) active cycles", n=1,
                reached=f"{weights.predicted:.0f} of {weights.published:.0f}, "
                        f"{weights.error:+.1%}; all {len(active)} engines: median {rest[0]:.1%}",
                target="within 15 %", met=abs(weights.error) <= 0.15, rows=tuple(active),
                fitted=fitted + "; what counts as active was defined with these eight in sight"),
    ]


def check_hand_over(hardware: Sequence[MeasuredEpoch], npu: Npu) -> list[Verdict]:
    """Host cycles before and after an epoch, each row predicted by a fit without it."""
    fits = [fit_hand_over(_without(hardware, n), npu) for n in range(len(hardware))]
    verdicts = []
    for phase in ("pre", "post"):
        rows = []
        for row, fitted in zip(hardware, fits, strict=True):
            run = run_task(row.epoch, replace(npu, hand_over=fitted))
            rows.append(Row(epoch=row.epoch.name, quantity=f"{phase} host cycles",
                            published=getattr(row, f"{phase}_cpu_cycles"),
                            predicted=getattr(run, f"{phase}_cpu_cycles")))
        median, high = spread_of(row.error for row in rows)
        verdicts.append(Verdict(
            what=f"{phase} host cycles of measured hardware epochs, leave-one-out", n=len(rows),
            reached=f"median {median:.1%}, 90th percentile {high:.1%}", target="median < 25 %",
            met=median < 0.25, rows=tuple(rows),
            fitted="constant, per engine, per convolution and arithmetic unit, to other rows"))
    return verdicts


def print_verdicts(verdicts: Sequence[Verdict], write: Callable[[str], object]) -> None:
    """Print verdicts with their rows; the compiler's only where they are not exact."""
    for verdict in verdicts:
        mark = {True: "met", False: "NOT MET", None: "-"}[verdict.met]
        write(f"{verdict.what}\n  n {verdict.n}: {verdict.reached}\n"
              f"  target: {verdict.target}: {mark}; fitted: {verdict.fitted}\n")
        for row in verdict.rows:
            if row.quantity == "max cycles" and row.predicted == row.published:
                continue
            error = f"{row.error:+8.1%}" if row.published else "       -"
            base = "" if row.baseline is None else f"   baseline {row.baseline:10.0f}"
            write(f"    {row.epoch:42} {row.quantity:28} {row.published:10.0f} "
                  f"{row.predicted:10.0f} {error}{base}\n")


def describe_fit(npu: Npu) -> str:
    """Return the fitted numbers on all rows, as the board file should state them."""
    hardware = [row for row in read_measured_epochs() if row.epoch.kind == "hw"]
    machine, hand = fit_machine(hardware, npu), fit_hand_over(hardware, npu)
    return (f"fitted to all {len(hardware)} rows: start {machine.start_cycles}, write gap "
            f"{machine.interfaces[0].write_gap_cycles:.3f}, NPU RAM latency "
            f"{machine.pool('npuRAM5').read_latency_cycles:.2f}, weights ahead "
            f"{machine.weight_ahead_bytes}\n{hand}\n")


def main() -> int:
    """Print every verdict; returns 1 when a target is missed."""
    verdicts = check_npu()
    print_verdicts(verdicts, sys.stdout.write)
    sys.stdout.write(describe_fit(load_npu()))
    return int(any(verdict.met is False for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
