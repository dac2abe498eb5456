"""A flamegraph of a network's kernels on this machine, sampled by the user's own py-spy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hwmodels.errors import ToolMissingError
from hwmodels.processes import command_of, environment
from twin.errors import FirmwareError
from twin.network.graph import Graph
from twin.program.image.compile.native import build_library

RATE_HZ = 500
_LAYER = re.compile(r"^run_(\d+) ")


def find_profiler() -> str | None:
    """Return py-spy's path: on the path, or beside this Python; None where it is not installed."""
    beside = Path(sys.executable).with_name("py-spy")
    return shutil.which("py-spy") or (str(beside) if beside.is_file() else None)


def sample_stacks(graph: Graph, seconds: float = 3.0) -> list[str]:
    """Return folded stacks of the kernels: network, layer, functions, and how many samples.

    Parameters
    ----------
    seconds
        To sample for, `RATE_HZ` times each.

    Raises
    ------
    ToolMissingError
        Without py-spy or a C compiler.
    FirmwareError
        When py-spy cannot watch (it needs leave to trace its own child).
    """
    profiler = find_profiler()
    if profiler is None:
        raise ToolMissingError("sampling needs py-spy: pip install py-spy")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library, raw = build_library(graph, folder), folder / "stacks.txt"
        command = [profiler, "record", "--native", "--rate", str(RATE_HZ), "--format", "raw",
                   "--output", str(raw), "--", *command_of("twin.program.image.compile.native"),
                   str(library), str(seconds)]
        result = subprocess.run(command, capture_output=True, text=True, check=False,
                                env=environment())
        if result.returncode or not raw.is_file():
            last_lines = result.stderr.strip().splitlines()[-3:]
            raise FirmwareError("py-spy could not sample: " + " ".join(last_lines))
        return list(_keep_kernels(graph, raw.read_text(encoding="utf-8").splitlines()))


def _layer_of(line: str) -> int:
    found = re.search(r";run_(\d+) ", line)
    return int(found[1]) if found else -1


def _keep_kernels(graph: Graph, lines: list[str]) -> Iterator[str]:
    """Stacks from the layer's own function on, under the names the model file has."""
    totals: dict[str, int] = {}
    for line in sorted(lines, key=_layer_of):
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        place, match = next(((i, found) for i, frame in enumerate(frames)
                             if (found := _LAYER.match(frame))), (0, None))
        if match is None:
            continue
        layer = graph.layers[int(match[1])]
        functions = [frame.partition(" (")[0] for frame in frames[place + 1:]]
        key = ";".join((graph.name, f"{layer.index} {layer.op}", *functions))
        totals[key] = totals.get(key, 0) + int(count)
    return (f"{stack} {count}\n" for stack, count in totals.items())
