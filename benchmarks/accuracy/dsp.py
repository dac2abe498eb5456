"""DSPs and fixed-function accelerators beside published cycles, each with a baseline.

    python -m benchmarks.accuracy.dsp
    TWIN_TI_MATHLIB=FOLDER python -m benchmarks.accuracy.dsp    # blocks of TI's listings, too
    TWIN_ESP_DL=FOLDER python -m benchmarks.accuracy.dsp        # networks of a clone of ESP-DL, too

Only rows of `use=fit` and, in total, the ESP32-P4's, which judge and were learnt from nowhere,
are here. A baseline is what a page of a datasheet gives: peak rates.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator, Mapping
from itertools import product, starmap
from pathlib import Path
from typing import Any

import yaml

import twin
from benchmarks.accuracy import esp_kernels
from benchmarks.accuracy.bundles import Edge, Operation, Pipelined, pipeline_loop
from calibration.datasets import published_rows, read_table
from hwmodels.board.file import load_board
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule
from hwmodels.frozen import frozen
from hwmodels.schedule.cluster import share_work, wait_of_access
from tests.oracles.c6000_listing import read_listing, schedule_listing
from tests.oracles.ne16_accesses import count_accesses
from twin.network.graph import Graph
from twin.network.operators import graph_macs
from twin.network.zoo import build
from twin.network.zoo.builder import Builder
from twin.runtimes.ai8x.cycles import LayerShape, count_cycles
from twin.runtimes.gap import ne16


@frozen
class Judged:
    """One table: (name, published, predicted, baseline) of each row, and what the baseline is."""

    table: str
    baseline: str
    rows: tuple[tuple[str, float, float, float], ...]

    def describe(self) -> str:
        """Return the table's line: rows, exact ones, and median and largest errors."""
        own, plain = ([abs(row[place] / row[1] - 1) for row in self.rows] for place in (2, 3))
        exact, near = (sum(abs(row[1] - row[2]) <= off for row in self.rows) for off in (0, 1))
        whole = f"{exact} | {near}" if exact else "- | -"
        return (f"| {self.table} | {len(self.rows)} | {whole} | {statistics.median(own):.1%} | "
                f"{max(own):.1%} | {statistics.median(plain):.1%} ({self.baseline}) |")


def _pair(row: Mapping[str, Any], key: str) -> tuple[int, int]:
    return row[f"{key}_rows"], row[f"{key}_columns"]


def shape_of_row(row: Mapping[str, Any]) -> LayerShape:
    """Return a published layer as the accelerator's registers."""
    twice = 2 if row["operator"] == "CONVTRANSPOSE2D" else 1
    rows, columns = ((twice * size + stride - window) // stride for size, window, stride in zip(
        _pair(row, "input_dim"), _pair(row, "pool"), _pair(row, "pool_stride"), strict=True))
    return LayerShape(
        pooled=(rows, columns), channels=row["output_chan"], kernel=_pair(row, "kernel_size"),
        padding=_pair(row, "padding"), pool=_pair(row, "pool"), passes=row["in_expand"],
        operands=row["operands"], pool_first=bool(row["pool_first"]),
        convolves=row["operator"] != "NONE", slots=row["timeslots"], flattens=bool(row["flatten"]),
        streams=bool(row["streaming"]))


def job_of_row(row: Mapping[str, Any]) -> ne16.Job:
    """Return a published job of NE16."""
    return ne16.Job(**{key: row[key] for key in (
        "kind", "rows", "columns", "inputs", "outputs", "weight_bits", "output_bits")},
        scale_bytes=4 if row["normalisation"] == 2 else 1, biased=row["normalisation"] > 0)


def _judge_jobs() -> Iterator[Judged]:
    cycles, accesses = [], []
    for number, row in enumerate(read_table("ne16_jobs").rows):
        job = job_of_row(row)
        taps = {"conv1x1": 1, "conv3x3": 9, "depthwise3x3": 9 / job.outputs}[job.kind]
        pixels, weights = job.rows * job.columns, job.outputs * job.inputs * taps
        cycles.append((f"{number}", row["busy_cycles"], ne16.count_cycles(job),
                       pixels * weights / 162))
        plain = (pixels * job.inputs + weights, pixels * job.outputs * job.output_bits / 8)
        accesses += [(f"{number} {way}", row[way], count, size / 36) for way, count, size in zip(
            ("reads", "writes"), count_accesses(job), plain, strict=True)]
    yield Judged(table="NE16 jobs: cycles", baseline="peak MACs", rows=tuple(cycles))
    yield Judged(table="NE16 jobs: reads, writes", baseline="operands, 36 bytes at a time",
                 rows=tuple(accesses))


def time_kernel(kernel: Mapping[str, Any], cores: int = 1) -> float:
    """Return the cycles of a kernel of `gap8_kernels.yaml`, its turns dealt to cores of GAP8."""
    core, npu = load_core("ri5cy"), load_board("gapuino").npu
    assert npu is not None and npu.scratch is not None, "a cluster"
    inner, outer = (schedule(kernel[part], core) for part in ("inner", "outer"))
    own = inner.steady.cycles + kernel.get("unaligned", 0) * core.unaligned.load_cycles
    turn = kernel["trips"] * own + outer.steady.cycles + outer.steady.refill_cycles
    often = min(1.0, (kernel["trips"] * (inner.loads + inner.stores)
                      + outer.loads + outer.stores) / turn)
    slowed = 1 + often * wait_of_access(cores, npu.scratch.banks, often)
    barrier = npu.units[0].barrier_cycles if cores > 1 else 0
    return kernel["turns"] / cores * share_work(kernel["turns"], cores) * turn * slowed + barrier


def _judge_gap8() -> Judged:
    kernels = yaml.safe_load(Path(__file__).with_name("gap8_kernels.yaml").read_text())
    return Judged(
        table="GAP8 kernels, one core", baseline="an instruction a cycle, no loops or waits",
        rows=tuple((row["kernel"], row["cycles_100"] / 100, time_kernel(kernel),
                    kernel["turns"] * kernel["trips"] * (kernel["inner"].count(";") + 1))
                   for row in read_table("gap8_kernels").rows
                   for kernel in [kernels[row["kernel"]]]))


def _published_networks() -> Iterator[tuple[str, str, float, str, str, float]]:
    """Yield board, clock's path, its Hz, network, quantity and value of MLPerf Tiny v1.0."""
    for row in published_rows():
        for quantity, value in (("latency", row.latency_ms), ("energy", row.energy_uj)):
            if row.board_name == "GAP9 EVK" and value and row.clock_hz and row.model:
                yield "gap9evk", "fc", row.clock_hz, row.model, quantity, value
    for line in read_table("mlperf_tiny_accelerators").rows:
        if line["round"] == "v1.0":
            yield ("xg24_dk2601b", "cpu", line["clock_mhz"] * 1e6, line["network"],
                   line["quantity"], line["value"])


def _judge_networks(peaks: Mapping[str, float]) -> Iterator[Judged]:
    """Latency in ms and energy in uJ; `peaks` are MACs a cycle. Energies of EFR32 were fitted."""
    rows = sorted(_published_networks())
    for board, clock, hertz in sorted({row[:3] for row in rows}):
        made = {name: twin.predict(twin.deploy(name, board).replace(
            {f"clocks.{clock}.frequency_hz": hertz})) for name in {
                row[3] for row in rows if row[:3] == (board, clock, hertz)}}
        macs = {name: graph_macs(build(name)) for name in made}
        for quantity, baseline in (("latency", "peak MACs"), ("energy", "all at the mean per MAC")):
            chosen = {row[3]: row[5] for row in rows
                      if row[:3] == (board, clock, hertz) and row[4] == quantity}
            mean = statistics.mean(value / macs[name] for name, value in chosen.items())
            yield Judged(
                table=f"{board} at {hertz / 1e6:.0f} MHz, MLPerf Tiny, {quantity}"
                + " (fitted)" * (board == "xg24_dk2601b" and quantity == "energy"),
                baseline=baseline, rows=tuple(
                    (name, value, made[name].energy_uj if quantity == "energy"
                     else made[name].time_us / 1e3, macs[name] * mean if quantity == "energy"
                     else macs[name] / peaks[board] / hertz * 1e3)
                    for name, value in chosen.items()))


def _mvp_graph(row: Mapping[str, Any]) -> Graph:
    """Return a published layer as a network of one."""
    net, op = Builder("mvp", 0), row["operator"]
    shape, output, window, stride = (tuple(map(int, str(row[key] or "1x1").split("x")))
                                     for key in ("input", "output", "window", "stride"))
    source = net.input(shape)
    if op == "fully_connected":
        return net.finish(net.fully_connected(source, output[-1]))
    if op == "add":
        return net.finish(net.add(source, net.input(shape)))
    if op.endswith("pool_2d"):
        return net.finish(net.pool(op, source, window, stride, padding=row["padding"]))
    if op == "conv_2d":
        return net.finish(net.conv(source, output[-1], window, stride, padding=row["padding"]))
    return net.finish(net.depthwise(source, window, stride, padding=row["padding"]))


def _judge_mvp() -> Judged:
    rows = [row for row in read_table("xg24_mvp_layers").rows if row["time_us"] >= 300 and (
        row["operator"] != "depthwise_conv_2d" or row["input"].split("x")[-1]
        == row["output"].split("x")[-1])]
    return Judged(
        table="EFR32xG24 layers (fitted)", baseline="a MAC or element a cycle", rows=tuple(
            (str(number), row["time_us"], twin.predict(twin.deploy(
                graph, "xg24_dk2601b"), calibration="none").time_us,
             max(graph_macs(graph), graph.tensors[graph.outputs[0]].elements) / 78)
            for number, row in enumerate(rows) for graph in [_mvp_graph(row)]))


ESP = {"ESP32-S3": "esp32s3_devkitc", "ESP32-P4": "esp32p4_function_ev"}


def judge_esp(part: tuple[str, str], build: str) -> Judged:
    """Kernels of a chip; the ESP32-P4's are of the release each row was made with."""
    (chip, board), (runtime, column) = part, esp_kernels.BUILDS[build]
    rows = [row for row in read_table("esp_nn_kernels").rows if row["chip"] == chip]
    own = chip == "ESP32-P4" and build == "optimised"
    return Judged(
        table=f"{chip} kernels, {build}", baseline="16 MACs or elements a cycle", rows=tuple(
            (kernel, row[column], twin.predict(twin.deploy(
                graph, board, runtime=f"esp-nn@{row['release']}" if own else runtime, arena=memory,
                weights=memory), calibration="none").cycles,
             max(graph_macs(graph), graph.tensors[graph.outputs[0]].elements) / 16)
            for (kernel, memory, graph), row in zip(
                esp_kernels.kernel_graphs(), rows, strict=False)))


def _judge_nnc() -> Judged:
    rows = [(row, npu, unit) for row in read_table("ti_nnc").rows
            for npu in [load_board(row["board"]).npu] if npu for unit in npu.units]
    return Judged(
        table="TI NNC networks (fitted)", baseline="a MAC a cycle", rows=tuple(
            (f"{row['network']} {row['board']}", row["cycles"],
             8 * npu.hand_over.pre_cycles + row["macs"] / unit.peak_macs("8x8"), row["macs"])
            for row, npu, unit in rows))


def loop_of(kernel: Mapping[str, Any]) -> Pipelined:
    """Return a loop of `c6000_loops.yaml`, pipelined."""
    operations = [Operation(units=tuple(f"{unit}{side}" for unit in units for side in "12"))
                  for units, count in kernel.items() if units not in ("elements", "circle")
                  for _ in range(count)]
    circle = kernel.get("circle")
    return pipeline_loop(operations, [Edge(0, 0, *circle)] if circle else [])


def _judge_loops() -> Judged:
    kernels = yaml.safe_load(Path(__file__).with_name("c6000_loops.yaml").read_text())
    return Judged(
        table="C64x+ slopes of DSPLIB", baseline="8 operations a cycle", rows=tuple(
            (row["kernel"], row["cycles"] / row["elements"],
             loop_of(kernel).interval_cycles / kernel["elements"],
             len(loop_of(kernel).issue_cycles) / 8 / kernel["elements"])
            for row in read_table("ti_dsplib").rows
            if (kernel := kernels.get(row["kernel"]))))


def judge_blocks(folder: Path) -> Judged:
    """Judge blocks of TI's compiled MATHLIB; `folder` is `src` of MATHLIB 3.1.2.1 for C674x."""
    listings: dict[str, dict[int, int]] = {}
    rows = []
    for row in read_table("ti_blocks").rows:
        name = row["listing"]
        if name not in listings:
            blocks = list(read_listing((folder / name).read_text(errors="replace")))
            listings[name] = dict(zip((block.line for block in blocks),
                                      schedule_listing(blocks), strict=True))
        rows.append((f"{name}:{row['line']}", row["cycles"], listings[name][row["line"]],
                     row["instructions"]))
    return Judged(table="C674x blocks of MATHLIB", baseline="an instruction a cycle",
                  rows=tuple(rows))


OCTAL = {"memories.psram.size_bytes": "8MiB", "memories.psram.serial.mode": "8D-8D-8D"}
"""PSRAM of the boards ESP-DL's figures are taken to be of; the library copies weights there."""


def judge_esp_dl(folder: Path) -> Judged:
    """Judge networks of ESP-DL's model zoo on the ESP32-S3; `folder` is a clone of it.

    Below 9 MiB of PSRAM its YOLO11n leaves weights in the flash: models/coco_detect/*.cpp there.
    """
    board = twin.deploy("ad", "esp32s3_devkitc", runtime="esp-dl").replace(OCTAL).board
    found = [(row, twin.deploy(folder / row["network"], board, runtime="esp-dl",
                               weights="flash" if "yolo11n" in row["network"] else "psram",
                             arena="psram"))
             for row in read_table("esp_dl").rows]
    return Judged(
        table="ESP-DL networks, ESP32-S3 (fitted)", baseline="16 MACs a cycle", rows=tuple(
            (row["network"], row["latency_ms"],
             twin.predict(deployment, calibration="none").time_us / 1e3,
             graph_macs(deployment.graph) / 16 / 240e3) for row, deployment in found))


def judge() -> Iterator[Judged]:
    """Yield every table."""
    shapes = [(row, shape_of_row(row)) for row in read_table("max78000_layers").rows]
    yield Judged(
        table="MAX78000 layers", baseline="an output channel a cycle", rows=tuple(
            (row["layer"], row["cycles"], count_cycles(shape) + 1,
             math.prod(shape.output) * shape.channels) for row, shape in shapes))
    yield from (*_judge_jobs(), _judge_gap8(), *starmap(
        judge_esp, product(ESP.items(), esp_kernels.BUILDS)), _judge_mvp(),
                *_judge_networks({"gap9evk": 162, "xg24_dk2601b": 1}), _judge_nnc(),
                _judge_loops())


def main() -> None:
    """Print every table."""
    tables = [*judge(), *(judged(Path(os.environ[name])) for name, judged in (
        ("TWIN_TI_MATHLIB", judge_blocks), ("TWIN_ESP_DL", judge_esp_dl)) if name in os.environ)]
    print("| table | rows | exact | within 1 | median error | largest | baseline, median |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for judged in tables:
        print(judged.describe())


if __name__ == "__main__":
    main()
