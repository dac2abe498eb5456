"""What else a log may be of: another unit, network, board or library; our firmware says its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from itertools import product

from hwmodels.board.file import list_boards, load_board
from hwmodels.errors import TwinError
from twin.attribution.diagnosis.fault_list import is_stated, lower_compiled, try_changes
from twin.attribution.diagnosis.faults import (
    BOARD,
    COMPILED,
    ELSEWHERE,
    NETWORK,
    REPLACED,
    RIVAL,
    UNIT,
    Fault,
)
from twin.deployment.core import lower_network
from twin.deployment.deploy import deploy
from twin.deployment.deployment import Deployment
from twin.deployment.stated import list_candidates
from twin.network.graph import Graph
from twin.network.rewrites.channels import repeat_channels, trace_channels
from twin.network.rewrites.resolution import change_resolution, find_sides

WIDTHS = (0.25, 1 / 3, 0.5, 0.75, 1.5, 2.0, 3.0, 4.0)
"""Of a network taken for another of its kind, times its own."""

SIDES = (32, 64, 96, 128, 160, 192, 224)
"""Pixels of the square images networks of the same layers are trained for."""

UNITS = {1e3: "us read as ms, ms as s, or cycles as kcycles",
         1e6: "us read as s, or cycles as Mcycles",
         1e-3: "ms read as us, s as ms, or kcycles as cycles",
         1e-6: "s read as us, or Mcycles as cycles"}
"""What a slip of the unit multiplies a number by."""


def list_units() -> Iterator[Fault]:
    """Yield numbers that were noted in another unit than they are read in."""
    for times, text in UNITS.items():
        yield Fault(kind=UNIT, name=f"{times:,.6g} x what was meant: {text}",
                    counted=math.log(times), counts_all=True,
                    remedy="look which unit the numbers are in, and write them in the one they are "
                           "read in")


def list_others(deployment: Deployment, stated: str) -> Iterator[Fault]:
    """Yield other units, networks, boards and libraries: of logs, as our firmware says who it is.

    Parameters
    ----------
    stated
        Runtime as the log says it: other libraries are possible where that is none of ours, other
        releases where it names none; each may run a network of another width, too. What another
        network changes of compiled kernels is that of a library whose kernels are lowered.
    """
    yield from list_units()
    base = lower_compiled(deployment)
    if base is None:
        return
    versus, runtimes = None if base is deployment else base, {base.runtime.identity: ""}
    for identity in (() if versus or is_stated(stated) else
                     list_candidates(stated, board=deployment.board)):
        other = try_changes(deployment, {"runtime": identity})
        if other is not None and identity not in runtimes:
            runtimes[identity] = f", kernels of {identity}"
            yield Fault(kind=RIVAL, name=f"kernels of {identity}", deployment=other,
                        errors=REPLACED, rebuilds=True,
                        remedy=f"state the library if it is that: --runtime {identity}")
    for (name, graph), (runtime, kernels) in product(_list_networks(deployment.graph),
                                                     runtimes.items()):
        with suppress(TwinError):
            yield Fault(kind=NETWORK, name=f"a network {name}{kernels}", versus=versus,
                        deployment=deploy(graph, deployment.board, runtime=runtime),
                        errors=COMPILED if versus else REPLACED, rebuilds=True,
                        remedy="look which model the program holds: give that (--model)")
    cores = {deployment.board.core.model}
    for name in list_boards():
        try:
            board = load_board(name)
            if board.core.model in cores or name == "host":
                continue
            cores.add(board.core.model)
            other = deploy(deployment.graph, board, runtime=base.runtime.identity)
            lower_network(other)  # Some libraries refuse a core only here.
        except TwinError:
            continue
        yield Fault(kind=BOARD, name=f"a {board.core.model}, as on {name}", deployment=other,
                    errors=ELSEWHERE, rebuilds=True, versus=versus,
                    remedy="look which board was on the line: give that (-b)")


def _list_networks(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """Yield networks a program may hold by mistake: of another width, or for other images."""
    channels, (height, width) = trace_channels(graph), find_sides(graph) or (0, 1)
    for times in WIDTHS:
        with suppress(TwinError):
            yield f"{times:.3g} x as wide", repeat_channels(channels, times)
    for side in SIDES if height == width else ():
        with suppress(TwinError):
            if 0.5 <= side / width <= 2 and side != width:
                yield f"for {side} x {side} pixels", change_resolution(graph, side, side)
