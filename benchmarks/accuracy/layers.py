"""Published layers and kernels beside predicted ones: `python -m benchmarks.accuracy.layers`.

Whole networks hide errors that cancel; these tables do not. Every table says what had to be
assumed, for no publication states compiler and memories in full. At stated prices and, beside
them, at the learnt ones `twin predict` uses; a dated copy goes to `results/`.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import twin
from calibration.datasets import read_table
from calibration.fitting.intervals import LAYER_REACH
from hwmodels.frozen import frozen
from twin.deployment.deployment import Deployment
from twin.network.graph import Graph
from twin.network.zoo import build
from twin.network.zoo.builder import Builder

PICO_HZ, EFR32_HZ = 125e6, 78e6
BUILDS = {"C": "armv8-m", "DSP": "armv8-m-dsp", "MVE": "armv8.1-m-mve"}
COLUMNS = {"C": "ref_c_cycles", "DSP": "dsp_cycles", "MVE": "mve_cycles"}
PERSON_BLOCKS = ((1, 16), (2, 32), (1, 32), (2, 64), (1, 64), (2, 128), *((1, 128),) * 5, (2, 256),
                 (1, 256))
"""Stride and channels of the blocks of MobileNetV1 at a width of 0.25."""


@frozen
class Pair:
    """One layer or kernel, in cycles: published, predicted at both prices, and the interval."""

    name: str
    published: float
    stated: float
    learnt: float
    low: float = math.nan
    high: float = math.nan

    @property
    def covered(self) -> bool:
        """Whether the published cycles lie in the 90 % interval of the learnt prices."""
        return self.low <= self.published <= self.high


@frozen
class Judged:
    """One published table: its name, what had to be assumed, and its layers."""

    table: str
    assumed: str
    pairs: tuple[Pair, ...]


def judge_tables() -> Iterator[Judged]:
    """Yield every table that can be rebuilt."""
    yield from _apollo510_kernels()
    yield _judge("pico_person_detection", _person_detection(), "rpi_pico", "tflm-cmsis-nn@2023",
                 _person_cycles(), "the clock, 125 MHz; the release of the kernels; layer 0, a "
                 "depthwise with a multiplier of 8, is omitted")
    yield _judge("apollo4p_kws_cache", build("kws"), "nucleo_l4r5zi", "tflm-reference@2023",
                 _published("apollo4p_kws_cache", "tag", "cycles"),
                 "no board file: an L4R5's Cortex-M4 with weights in its SRAM; reference kernels, "
                 "as 29 cycles per MAC say; published is a first, cold inference from MRAM",
                 weights="sram")
    yield _judge("efr32xg24_layers", _image_example(), "nucleo_u575zi_q", "tflm-cmsis-nn@2023",
                 _published("efr32xg24_layers", "op", "cpu_cycles"),
                 "no board file: a U575's Cortex-M33 at 78 MHz; the release of the kernels; rows "
                 "without the accelerator, rounded to two or three digits", clock_hz=EFR32_HZ)


def _judge(table: str, graph: Graph, board: str, runtime: str, published: dict[int, float],
           assumed: str, **options: object) -> Judged:
    deployment = twin.deploy(graph, board, runtime=runtime, **options)
    return Judged(table=f"{table}, {board}, {runtime}", assumed=assumed,
                  pairs=_pair(deployment, published))


def _pair(deployment: Deployment, published: dict[int, float]) -> tuple[Pair, ...]:
    stated, learnt = (twin.predict(deployment, calibration=name) for name in ("none", "auto"))
    megahertz = deployment.board.clock(deployment.board.core.clock).frequency_hz / 1e6
    found = []
    for one, other in zip(stated.layers, learnt.layers, strict=True):
        if one.index in published and one.op != "reshape":
            sure = learnt.certainty and learnt.certainty.layers[one.index].time_us
            found.append(Pair(
                name=f"{one.index} {one.op}", published=published[one.index], stated=one.cycles,
                learnt=other.cycles, low=sure.low * megahertz if sure else math.nan,
                high=sure.high * megahertz if sure else math.nan))
    return tuple(found)


def _published(table: str, op: str, column: str) -> dict[int, float]:
    """Cycles by layer; what is published of a reshape is the interpreter's own."""
    return {number: row[column] for number, row in enumerate(read_table(table).rows)
            if "RESHAPE" not in str(row[op]).upper()}


def _person_cycles() -> dict[int, float]:
    return {row["layer_index"]: row["time_us_ticks"] * PICO_HZ / 1e6
            for row in read_table("pico_person_detection").rows
            if row["mode"] == "single-core" and row["layer_index"] not in ("TOTAL", 0)}


def _person_detection() -> Graph:
    net = Builder("person_detection", 0)
    x = net.conv(net.input((1, 96, 96, 1)), 8, 3, 2, activation="relu6")
    for stride, channels in PERSON_BLOCKS:
        x = net.conv(net.depthwise(x, 3, stride, activation="relu6"), channels, 1,
                     activation="relu6")
    x = net.conv(net.pool("average_pool_2d", x, net.shape(x)[1:3]), 2, 1, activation=None)
    return net.finish(net.softmax(net.flatten(x)))


def _image_example() -> Graph:
    net = Builder("image_example1", 0)
    x = net.conv(net.input((1, 96, 96, 1)), 24, 3, 2)
    x = net.conv(net.pool("average_pool_2d", x, 2), 16, 3, 2, padding="valid")
    x = net.pool("average_pool_2d", net.conv(x, 24, 3, padding="valid"), 2)
    return net.finish(net.softmax(net.fully_connected(net.flatten(x), 3)))


def _apollo510_kernels() -> Iterator[Judged]:
    graphs = dict(_kernel_graphs())
    rows = {re.split(r"[ (]", row["kernel"])[0]: row
            for row in read_table("cmsisnn_kernels_m55").rows}
    for name, isa in BUILDS.items():
        pairs = []
        for kernel, graph in graphs.items():
            deployment = twin.deploy(graph, "apollo510_evb", runtime="cmsis-nn").replace(
                {"cores.main.isa": isa, "clocks.cpu.frequency_hz": 96e6})
            (pair,) = _pair(deployment, {0: rows[kernel][COLUMNS[name]]})
            pairs.append(replace(pair, name=kernel))
        yield Judged(table=f"cmsisnn_kernels_m55, {name} build, apollo510_evb, cmsis-nn",
                     assumed="data in DTCM, code in ITCM; a convolution pads by one; subtraction "
                             "and operations on a scalar have no layer of their own and are left "
                             "out", pairs=tuple(pairs))


def _kernel_graphs() -> Iterator[tuple[str, Graph]]:
    net = Builder("conv", 0)
    yield "arm_convolve_s8", net.finish(net.conv(net.input((1, 32, 32, 64)), 64, 3))
    net = Builder("depthwise", 0)
    yield "arm_depthwise_conv_s8_opt", net.finish(net.depthwise(net.input((1, 32, 32, 64)), 3))
    net = Builder("dense", 0)
    yield "arm_nn_vec_mat_mult_t_s8", net.finish(net.fully_connected(net.input((1, 256)), 512))
    net = Builder("add", 0)
    yield "arm_elementwise_add_s8", net.finish(net.add(net.input((1, 4096)), net.input((1, 4096))))


def describe(judged: Judged) -> str:
    """Return a table and its summary as Markdown."""
    lines = [f"**{judged.table}**", "", f"Assumed: {judged.assumed}.", "",
             "| layer | published, cycles | stated / published | learnt / published | interval |",
             "| --- | --- | --- | --- | --- |"]
    lines += [f"| {one.name} | {one.published:,.0f} | {one.stated / one.published:.2f} | "
              f"{one.learnt / one.published:.2f} | {one.low / one.published:.2f} to "
              f"{one.high / one.published:.2f}{'' if one.covered else ', missed'} |"
              for one in judged.pairs]
    for name in ("stated", "learnt"):
        ratios = np.array([getattr(one, name) / one.published for one in judged.pairs])
        whole = sum(getattr(one, name) for one in judged.pairs) / sum(
            one.published for one in judged.pairs)
        lines.append(f"| {name}: n {len(ratios)} | sum {whole:.2f} | median {np.median(ratios):.2f}"
                     f" | p90 of abs. error {100 * np.quantile(abs(ratios - 1), 0.9):.0f} % |")
    lines.append(f"| 90 % intervals cover | {_cover(judged.pairs)} |")
    return "\n".join(lines) + "\n"


def _cover(pairs: Sequence[Pair]) -> str:
    """How many intervals hold, of how many, and how wide they are in the median."""
    wide = np.median([math.sqrt(one.high / one.low) for one in pairs])
    return f"{sum(one.covered for one in pairs)} of {len(pairs)}, x/{wide:.2f} in the median"


def _reach(pairs: Sequence[Pair]) -> float:
    """Deviations that 90 % of layers are within; intervals reach `LAYER_REACH` of them."""
    return LAYER_REACH * float(np.quantile([abs(
        math.log(one.published / one.learnt) / math.log(one.high / one.learnt))
        for one in pairs], 0.9))


def main() -> None:
    """Print every table, and keep them with their date."""
    tables = tuple(judge_tables())
    report = "\n".join(describe(one) for one in tables)
    pairs = [pair for one in tables for pair in one.pairs]
    reaches = [f"{_reach([pair for pair in pairs if pair not in one.pairs]):.2f}" for one in tables]
    report += (f"\n90 % intervals of layers cover {_cover(pairs)}.\n\nDeviations 90 % of layers "
               f"are within, a table held out: {', '.join(reaches)}; {LAYER_REACH} are taken.\n")
    print(report)
    results = Path(__file__).parent / "results"
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    (results / f"layers-{date}.md").write_text(
        "# Published layers and kernels beside predicted ones\n\n" + report, encoding="utf-8")


if __name__ == "__main__":
    main()
