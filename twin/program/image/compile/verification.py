"""An image on a board, real or virtual, against the arithmetic it should compute."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hwmodels.board.facts import Board
from hwmodels.frozen import frozen
from twin.errors import FirmwareError
from twin.network.arithmetic import run_network
from twin.network.graph import Graph
from twin.network.operators import is_alias

if TYPE_CHECKING:
    from calibration.collecting.wire.session import Session
    from calibration.virtual_board import Scales

RUN_S = 600.0
"""Longest wait for a run."""

MOST_IDLE_BLOCKS = 5

_CLOCK, _CHECKSUM = 0, 1  # places in the list COUNTERS gives (firmware/core/run.h)


@frozen
class LayerRun:
    """One layer of a run on a board.

    Parameters
    ----------
    count
        Of the counter that `BoardRun.counter` names, least over the runs.
    equal
        Whether its output is bit for bit the arithmetic's; None: float, not compared so.
    """

    index: int
    op: str
    name: str
    count: float
    equal: bool | None


@frozen
class BoardRun:
    """A network that ran on a board.

    Parameters
    ----------
    counter
        What was counted, as the board or the emulator names it.
    simulated
        Whether the counter is one of a virtual board.
    layers
        In the order of the calls.
    total
        Whole inference, reads of the counter included, least over the runs.
    setup
        Preparing the network once.
    """

    counter: str
    simulated: bool
    layers: tuple[LayerRun, ...]
    total: float
    setup: float

    @property
    def outside(self) -> float:
        """Of the inference, what no layer took: checksums of outputs, calls, the counter's reads.

        Notes
        -----
        Of several runs each count is the least, so the rest is of no single run.
        """
        return self.total - sum(layer.count for layer in self.layers)

    @property
    def is_right(self) -> bool:
        """Whether no layer differs."""
        return all(layer.equal is not False for layer in self.layers)


def random_input(graph: Graph, seed: int = 0) -> np.ndarray:
    """Seeded input of a network: every int8 value, or normal floats."""
    tensor = graph.entry
    random = np.random.default_rng(seed)
    if tensor.dtype in ("float32", "float16"):
        return random.normal(size=tensor.shape).astype(tensor.dtype)
    return random.integers(-128, 128, tensor.shape).astype(np.int8)


@contextlib.contextmanager
def open_board(where: str, image: Path, *, virtual: bool,
               board: Board | None = None) -> Iterator[tuple[Session, Scales | None]]:
    """Open a session with a board: a serial device, or a virtual board started with the image.

    Parameters
    ----------
    where
        Device name, or the virtual board's, or "host".
    image
        ELF file a virtual board runs.
    board
        Whose costs an emulated core is given.
    """
    from calibration.collecting.link import open_link
    from calibration.collecting.wire.conversation import RETURN_S
    from calibration.collecting.wire.session import Session
    from calibration.virtual_board import launch
    from twin.program.image.compile.ports import check_core

    with contextlib.ExitStack() as stack:
        if not virtual:
            port, scales = where, None
        else:
            if board is not None and where != "host":
                check_core(where, board)
            launched = stack.enter_context(launch(where, image, board=board))
            port, scales = launched.port, launched.scales
        session = Session(stack.enter_context(open_link(port)),
                          return_s=0.0 if virtual else RETURN_S)
        session.open()
        stack.callback(session.stop)
        timer_hz = session.identify().timer_hz
        yield session, scales(timer_hz) if scales is not None and timer_hz else None


def run_on_board(session: Session, graph: Graph, values: np.ndarray, *, runs: int = 1,
                 scales: Scales | None = None) -> BoardRun:
    """Run a network on a board and compare every layer's output with the arithmetic.

    Parameters
    ----------
    session
        With a board whose image holds this network.
    runs
        Runs to take the least count of.
    scales
        From a virtual board's timer to what it stands for.

    Raises
    ------
    FirmwareError
        When the image holds another network, or the board does not make the runs.
    """
    from calibration.collecting.wire import payloads as wire

    identity = session.identify()
    if identity.model_sha256.hex() != graph.sha256:
        raise FirmwareError(f"{session.link.port}: the image holds {identity.model!r} "
                            f"({identity.model_sha256.hex()[:12]}), not {graph.source} "
                            f"({graph.sha256[:12]}); build and flash it again")
    session.load(values.tobytes())
    flags = wire.CONFIG_FLAGS["LAYERS"] | wire.CONFIG_FLAGS["VERIFY"]
    session.configure(flags=flags)
    counts: dict[int, float] = {}
    checksums: dict[int, set[int]] = {}
    first = done = idle = 0
    while done < runs:
        made = session.run(done, runs - done, timeout_s=RUN_S).done
        done, idle = done + made, 0 if made else idle + 1
        if idle >= MOST_IDLE_BLOCKS:
            raise FirmwareError(f"{session.link.port}: the board made no run of {idle} blocks")
        for start, samples in session.samples(first):
            first = start + len(samples)
            for sample in samples:
                if sample.counter == _CLOCK:
                    counts[sample.layer] = min(sample.value, counts.get(sample.layer, sample.value))
                elif sample.counter == _CHECKSUM:
                    checksums.setdefault(sample.layer, set()).add(sample.value)
    names = [counter.name for counter in session.counters()]
    places = {*range(sum(not is_alias(layer) for layer in graph.layers)), wire.LAYER_INFERENCE,
              wire.LAYER_SETUP}
    if not names or places - counts.keys():
        raise FirmwareError(f"{session.link.port}: the board sent no count of "
                            f"{len(places - counts.keys())} of {len(places)} layers and totals")
    name, factor = _scale(names[_CLOCK], scales)
    return BoardRun(
        counter=name, simulated=identity.has("SIMULATED"),
        layers=_compare(graph, run_network(graph, [values]), counts, checksums, factor),
        total=counts[wire.LAYER_INFERENCE] * factor, setup=counts[wire.LAYER_SETUP] * factor)


def _scale(counter: str, scales: Scales | None) -> tuple[str, float]:
    """Name and factor of what the clock's ticks stand for; a virtual board has one scale."""
    return next(iter(scales.values())) if scales else (counter, 1.0)


def _compare(graph: Graph, arrays: dict[int, np.ndarray], counts: dict[int, float],
             checksums: dict[int, set[int]], factor: float) -> tuple[LayerRun, ...]:
    layers = [layer for layer in graph.layers if not is_alias(layer)]
    found = []
    for place, layer in enumerate(layers):
        expected = arrays[layer.target_id]
        equal = None
        if expected.dtype == np.int8:
            equal = checksums.get(place) == {zlib.crc32(expected.tobytes())}
        found.append(LayerRun(index=layer.index, op=layer.op, name=layer.name, equal=equal,
                              count=counts[place] * factor))
    return tuple(found)
