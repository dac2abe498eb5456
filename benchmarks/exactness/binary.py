"""What the machine code of our kernels is read to do, against what emulators count it doing.

    python -m benchmarks.exactness.binary [--networks kws,ic] [--random 200] [--keep]

Instructions: QEMU, Cortex-M4, M7 and M55; of random layers M55, Unicorn for the others. Loads,
stores and data-cache misses: the accesses Unicorn records, Cortex-M4 and M7, the misses by
replaying them under caches. Per layer, at each level of optimisation, for the networks of MLPerf
Tiny and for random layers. What reading the counters and calling a layer take is counted in the
same image with layers that return at once, and taken off.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.oracles.replay import empty_layers, record_layers, replay_layers
from calibration.errors import LinkError
from calibration.virtual_board.costs import Span
from hwmodels.board.facts import Cache
from hwmodels.cache.set_associative import new_state, simulate_nests
from hwmodels.core.file import load_core
from hwmodels.core.schedule import schedule
from hwmodels.frozen import frozen
from hwmodels.kernel import Kernel
from hwmodels.quantities import list_by_key
from twin.network.graph import Graph
from twin.network.operators import is_alias
from twin.network.readers import read_model
from twin.network.zoo.builder import Builder
from twin.program.image.compile.build import Build, build_firmware
from twin.program.image.compile.ports import load_port
from twin.program.image.compile.verification import BoardRun, open_board, random_input, run_on_board
from twin.program.image.read.kernels import read_kernels
from twin.program.image.read.network import read_built_image

NETWORKS = ("kws", "ic", "vww", "ad", "sww")
LEVELS = ("-O2", "-O3")
RECORDED = {"cortex-m4": "unicorn-m4", "cortex-m7": "unicorn-m7"}
COUNTED = {"cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500", "cortex-m55": "mps3-an547"}
RAM = 0x20000000
CACHES = (Cache(name="16 KiB, 4 ways", size_bytes=16384, line_bytes=32, ways=4),
          Cache(name="4 KiB, 2 ways", size_bytes=4096, line_bytes=32, ways=2))
SPANS = (Span(base=0x08000000, end=0x08800000, cached=True),
         Span(base=RAM, end=RAM + 0x400000, cached=True))
RESULTS = Path(__file__).parent / "results"


@frozen
class Row:
    """One layer, one quantity: read from the image, and counted."""

    network: str
    core: str
    level: str
    layer: str
    quantity: str
    predicted: int
    counted: int

    @property
    def error(self) -> float:
        """Relative to what was counted."""
        return abs(self.predicted - self.counted) / max(self.counted, 1)


def random_layers(seed: int) -> Graph:
    """A chain of eight layers of random kinds and shapes."""
    random = np.random.default_rng(seed)
    made = Builder(f"random {seed}", seed)
    here = made.input((1, *(int(n) for n in random.integers(5, 21, 2)),
                       int(random.integers(1, 40))))
    for kind in random.permutation(["conv", "conv", "pointwise", "depthwise", "depthwise",
                                    "add", "pool"]):
        height, width = made.shape(here)[1:3]
        kernel = tuple(int(k) for k in np.minimum(random.integers(1, 6, 2), (height, width)))
        stride = tuple(int(s) for s in random.integers(1, 3, 2))
        padding = str(random.choice(["same", "valid"]))
        if kind == "conv":
            here = made.conv(here, int(random.integers(1, 40)), kernel, stride, padding=padding)
        elif kind == "pointwise":
            here = made.conv(here, int(random.integers(1, 64)), 1)
        elif kind == "depthwise":
            here = made.depthwise(here, kernel, stride, padding=padding)
        elif kind == "add":
            here = made.add(here, here)
        else:
            op = str(random.choice(["average_pool_2d", "max_pool_2d"]))
            here = made.pool(op, here, kernel, stride, padding=padding)
    return made.finish(made.fully_connected(made.flatten(here), int(random.integers(1, 20))))


def called_layers(graph: Graph) -> list[int]:
    """Positions of the layers the image calls."""
    return [i for i, layer in enumerate(graph.layers) if not is_alias(layer)]


def read_build(built: Build, graph: Graph) -> list[Kernel]:
    """The kernel of each layer that is called, from the image alone."""
    kernels = read_kernels(read_built_image(built.image), graph, built.source.placement,
                           built.source.image, lambda address: "ram" if address >= RAM else "flash")
    return [kernel for group in kernels for kernel in group]


def compare_counted(name: str, graph: Graph, core: str, level: str, folder: Path,
                    compiler: str = "gcc") -> Iterator[Row]:
    """Instructions, against QEMU."""
    port, places = COUNTED[core], called_layers(graph)
    built = build_firmware(graph, load_port(port), folder, compiler=compiler, optimisation=level)
    idle = empty_layers(built.image, folder, [f"run_{place}" for place in places])
    counts = []
    for image in (built.image, idle):
        run = _run(port, image, graph)
        counts.append([round(layer.count) for layer in run.layers])
    for place, kernel, full, empty in zip(places, read_build(built, graph), *counts, strict=True):
        yield Row(network=name, core=core, level=level, layer=_title(graph, place),
                  quantity="instructions (QEMU)", counted=full - empty + 1,
                  predicted=count_instructions(kernel, core))


def _run(port: str, image: Path, graph: Graph) -> BoardRun:
    """Run on an emulated board; once more when another process still holds its line's name."""
    for attempt in range(3):
        try:
            with open_board(port, image, virtual=True) as (session, scales):
                return run_on_board(session, graph, random_input(graph), runs=3, scales=scales)
        except LinkError:
            if attempt == 2:
                raise
            time.sleep(5.0)
    raise AssertionError("a run returns or raises")


def count_instructions(kernel: Kernel, core: str) -> int:
    """Instructions of a kernel's blocks, all executed."""
    timing = load_core(core)
    return sum(schedule(block.code, timing).instructions * block.trips for block in kernel.blocks)


def compare_recorded(name: str, graph: Graph, core: str, level: str,
                     folder: Path) -> Iterator[Row]:
    """Instructions, loads, stores and misses, against what Unicorn records."""
    port, places = RECORDED[core], called_layers(graph)
    built = build_firmware(graph, load_port(port), folder, optimisation=level)
    records = record_layers(port, built.image, random_input(graph).tobytes(),
                            [f"run_{place}" for place in places], room=1 << 26)
    kernels = read_build(built, graph)
    misses: list[tuple[str, Sequence[int], Sequence[int]]] = []
    for cache in CACHES:
        state = new_state(cache)
        for _ in range(2):
            ran = []
            for kernel in kernels:
                counts, state = simulate_nests(cache, kernel.nests, kernel.operands, state)
                ran.append(counts)
        misses.append((f"misses, {cache.name}",
                       [one.total("read_misses") + one.total("write_misses") for one in ran],
                       [one.misses for one in replay_layers(records, cache, SPANS)]))
    found = [("loads", [one.total("reads") for one in ran],
              [record.totals.loads for record in records]),
             ("stores", [one.total("writes") for one in ran],
              [record.totals.stores for record in records]),
             ("instructions (Unicorn)", [count_instructions(kernel, core) for kernel in kernels],
              [record.totals.instructions for record in records]), *misses]
    for quantity, predicted, counted in found:
        for place, one, other in zip(places, predicted, counted, strict=True):
            yield Row(network=name, core=core, level=level, layer=_title(graph, place),
                      quantity=quantity, predicted=one, counted=other)


def _title(graph: Graph, place: int) -> str:
    return f"{place} {graph.layers[place].op}"


def summarise(rows: Sequence[Row]) -> list[str]:
    """Markdown: worst and median error by network, core, level and quantity."""
    lines = ["| network | core | level | quantity | layers | median | worst | worst layer "
             "(read, counted) |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    groups = list_by_key(((row.network, row.core, row.level, row.quantity), row) for row in rows)
    for key, members in groups.items():
        worst = max(members, key=lambda row: row.error)
        lines.append(f"| {' | '.join(key)} | {len(members)} "
                     f"| {statistics.median(row.error for row in members):.2%} "
                     f"| {worst.error:.2%} | {worst.layer} ({worst.predicted:,}, "
                     f"{worst.counted:,}) |")
    return lines


def run(networks: Sequence[str], layers: int) -> Iterator[list[Row]]:
    """Compare network by network."""
    made = 0
    graphs: list[tuple[str, Graph]] = [(name, read_model(name)) for name in networks]
    while made < layers:
        graph = random_layers(1000 + len(graphs))
        made += len(called_layers(graph))
        graphs.append(("random", graph))
    for name, graph in graphs:
        for level in LEVELS:
            with tempfile.TemporaryDirectory() as folder:
                counted = COUNTED if name in networks else {"cortex-m55": COUNTED["cortex-m55"]}
                for compare, cores in ((compare_recorded, RECORDED), (compare_counted, counted)):
                    for core, port in cores.items():
                        yield list(compare(name, graph, core, level, Path(folder, port)))


METHOD = ("Counts of emulators and of caches replayed, no time of any hardware: this tests how a "
          "binary is read (the method), not what things cost on a board (the model).")


def main() -> None:
    """Print the table, and keep it when asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--random", type=int, default=200, metavar="LAYERS")
    parser.add_argument("--keep", action="store_true", help="write it to results/")
    chosen = parser.parse_args()
    rows: list[Row] = []
    for some in run([name for name in chosen.networks.split(",") if name], chosen.random):
        rows += some
        print("\n".join(summarise(some)[2:]), flush=True)
    table = f"{METHOD}\n\n" + "\n".join(summarise(rows))
    print(f"\n{table}")
    if chosen.keep:
        RESULTS.mkdir(exist_ok=True)
        day = datetime.date.today().isoformat()
        with (RESULTS / f"binary-{day}.md").open("a", encoding="utf-8") as kept:
            kept.write(f"`{' '.join(sys.argv[1:])}`\n\n{table}\n\n")


if __name__ == "__main__":
    main()
