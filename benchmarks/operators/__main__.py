"""Operators as lowered beside operators as counted: `python -m benchmarks.operators [--fit]`.

Each counted row is deployed as a network of one layer on a board of its core, under the runtime of
its kernels and level, and predicted at stated prices. Instructions, loads and stores are those of
the prediction. Rows held out come first: nothing is fitted to them. `--fit` first learns the
coefficients of `twin/runtimes/counted/counts` again and says how far each row is when its code's
other rows predict it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.operators.fit import write_tables
from benchmarks.operators.lending import find_overfitted, leave_one_out, lend_rows
from benchmarks.operators.networks import execute_network, read_layers
from benchmarks.operators.table import Counted, read_graphs, read_rows
from benchmarks.operators.terms import VECTORS, group_rows
from hwmodels.errors import TwinError
from hwmodels.isa.instruction import parse_code
from hwmodels.simulator import simulate
from twin.deployment.core import code_address, lower_network
from twin.deployment.deploy import deploy
from twin.errors import RuntimeRefusedError
from twin.network.graph import GraphLayer
from twin.runtimes.counted.describe import describe
from twin.runtimes.counted.lower import COUNTED_WITH
from twin.runtimes.counted.table import FOLDER, Amounts, look_up

BOARDS = {"cortex-m4": "nucleo_l4r5zi", "cortex-m7": "nucleo_h7a3zi_q",
          "cortex-m0plus": "rpi_pico", "cortex-m55": "apollo510_evb",
          "cortex-m33": "nucleo_u575zi_q", "c906": "m1s_dock"}
"""Where rows of a core run; rows of other cores are held against the table itself."""

LIBRARIES = {"cmsis-nn": "tflm-cmsis-nn", "reference": "tflm-reference"}
"""Runtimes by kernels; others are runtimes by that name, whose levels are their releases."""


def name_runtime(kernels: str, level: str) -> str:
    """Return the runtime of kernels built at a level ("Os", of an older release "Os@2023")."""
    if kernels not in LIBRARIES:
        return f"{kernels}@{level.lower()}"
    options, _, release = level.partition("@")
    return f"{LIBRARIES[kernels]}@{release or '2026'}" + (
        options.replace("O2", "").replace("Os", "-os"))


def execute(row: Counted) -> tuple[int, int, int]:
    """Return instructions and accesses of a row as the twin lowers it.

    Accesses are loads and stores; on a core with vectors, where the counts hold each element of
    one, the bytes of the table.
    """
    amounts = read_amounts(row)
    if row.core not in BOARDS:
        return amounts.total, amounts.loads, amounts.stores
    deployment = deploy(read_graphs()[row.model], BOARDS[row.core],
                        runtime=name_runtime(row.kernels, row.level))
    if deployment.board.core.soft_float != COUNTED_WITH:
        deployment = deployment.replace({"cores.main.soft_float": COUNTED_WITH})
    kernels = [kernel for group in lower_network(deployment) for kernel in group]
    runs = simulate(kernels, deployment.board, code_address=code_address(deployment),
                    code_memory=deployment.code, cold=True)
    moved = {"load": 0, "store": 0}
    for kernel in kernels:
        for block in kernel.blocks:
            for one in parse_code(block.code):
                if one.kind in moved:
                    moved[one.kind] += one.transfers * block.trips
    instructions = sum(run.traffic.instructions for run in runs)
    if row.core in VECTORS:
        return instructions, amounts.load_bytes, amounts.store_bytes
    return instructions, moved["load"], moved["store"]


def read_amounts(row: Counted) -> Amounts:
    """Return what the table says of a row."""
    graph = read_graphs()[row.model]
    work = describe(GraphLayer(graph, graph.layers[0]), row.kernels)
    amounts = None if work is None else look_up(
        row.kernels, row.core.removeprefix("cortex-"), row.level, graph.layers[0].op, work)
    if amounts is None:
        raise RuntimeRefusedError(f"{graph.layers[0].op} was not counted")
    return amounts


def describe_errors(name: str, errors: Iterable[float]) -> str:
    """Return a line: how many, median, 90 % and largest of absolute relative errors."""
    found = np.abs(list(errors))
    return (f"{name:44} {len(found):5} {np.median(found):7.1%} {np.quantile(found, 0.9):7.1%} "
            f"{found.max():8.1%}")


def judge(rows: Iterable[Counted]) -> int:
    """Print errors by core, level and operator; returns how many rows were refused."""
    found: list[tuple[Counted, str, float, float, float]] = []
    refused: list[str] = []
    for row in rows:
        try:
            counts = execute(row)
        except TwinError as refusal:
            refused.append(f"{row.model} on {row.core}: {refusal}")
            continue
        wanted = (row.instructions, row.load_bytes, row.store_bytes) if row.core in VECTORS \
            else (row.instructions, row.loads, row.stores)
        found.append((row, read_graphs()[row.model].layers[0].op, *(
            said / max(1, counted) - 1 for said, counted in zip(counts, wanted, strict=True))))
    print(f"{'instructions':44} {'rows':>5} {'median':>7} {'90 %':>7} {'largest':>8}")
    for key in dict.fromkeys((one[0].kernels, one[0].core, one[0].level) for one in found):
        print(describe_errors(" ".join(key), (
            one[2] for one in found if (one[0].kernels, one[0].core, one[0].level) == key)))
    for op in sorted({one[1] for one in found}):
        print(describe_errors(op, (one[2] for one in found if one[1] == op)))
    for name, vectors in (("", False), (" in bytes, cores with vectors", True)):
        some = [one for one in found if (one[0].core in VECTORS) is vectors]
        if some:
            print(describe_errors(f"loads{name}", (one[3] for one in some)))
            print(describe_errors(f"stores{name}", (one[4] for one in some)))
    print(describe_errors("instructions, all", (one[2] for one in found)))
    for line in sorted(set(refused))[:20]:
        print("refused:", line)
    return len(refused)


def judge_networks() -> None:
    """Print errors of whole networks and of their layers, by library, core and level."""
    found: dict[tuple[str, str, str, str], dict[str, int]] = {}
    for row in read_layers():
        key = (row.kernels, row.core, row.level, row.network)
        found.setdefault(key, {})[row.layer] = row.instructions
    print(f"{'layers of networks, instructions':44} {'rows':>5} {'median':>7} {'90 %':>7} "
          f"{'largest':>8} {'network':>8}")
    for key, counts in found.items():
        kernels, core, level, network = key
        said = execute_network(network, BOARDS[core], name_runtime(kernels, level))
        counted = [counts[str(place)] for place in range(len(said))]
        line = describe_errors(" ".join(key), (
            one / other - 1 for one, other in zip(said, counted, strict=True)))
        print(f"{line} {sum(said) / sum(counted) - 1:+8.1%}")


def main() -> int:
    """Fit if asked, then judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators")
    parser.add_argument("--fit", action="store_true", help="learn the coefficients again")
    parser.add_argument("--core", action="append", help="judge this core only")
    parser.add_argument("--level", action="append", help="judge this level only")
    parser.add_argument("--networks", action="store_true", help="judge whole networks only")
    parser.add_argument("--every", type=int, default=10, metavar="N",
                        help="judge one of so many rows that are fitted to")
    asked = parser.parse_args()
    if asked.networks:
        judge_networks()
        return 0
    if asked.fit:
        groups = group_rows()
        lent = lend_rows(groups)
        write_tables(groups, lent, Path(FOLDER))
        errors = leave_one_out(lent)
        print(describe_errors("held out, from its code's other rows", (one for _, one in errors)))
    rows = [row for row in read_rows() if (not asked.core or row.core in asked.core)
            and (not asked.level or row.level in asked.level)]
    held_out = [row for row in rows if row.use == "judge"]
    fitted = [row for row in rows if row.use == "fit"][::asked.every]
    for key, model, share in find_overfitted(group_rows()):
        print(f"overfitted: {' '.join(key)} gives {model} {share:.0%} of a like count")
    print(f"held out: {len(held_out)} rows nothing is fitted to")
    refused = judge(held_out) if held_out else 0
    print(f"\nfitted: {len(fitted)} rows, one of {asked.every}")
    return 1 if refused + judge(fitted) else 0


if __name__ == "__main__":
    sys.exit(main())
