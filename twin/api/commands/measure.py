"""`twin measure`: run a network on a board, real or virtual, and keep every sample."""

from __future__ import annotations

import shutil
import time
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.measurement.measurement import BOARD_HASH
from calibration.virtual_board.host import bound_to
from hwmodels.board.file import hash_board
from hwmodels.errors import reworded
from hwmodels.files import File, read_regular
from hwmodels.frozen import frozen
from twin.api.commands.campaign import Run, read_started, refuse_other
from twin.api.commands.claims import CLAIM, claim_folder
from twin.api.commands.measuring import HOST, Watcher, aim, find_machine
from twin.api.requests.measurement import MeasureOptions
from twin.attribution.folders import tell_other_file
from twin.errors import UsageError
from twin.network.readers import read_model

if TYPE_CHECKING:
    from hwmodels.board.facts import Board
    from twin.attribution.measured_layers import MeasuredNetwork
    from twin.network.graph import Graph

SAME_CLOCK = 1e-3
"""Share that a clock asked for may be off the one a board stated, which rounds."""


@frozen
class Measured:
    """What a board did.

    Parameters
    ----------
    folder : Path
        With a folder of samples per temperature.
    networks : tuple of MeasuredNetwork
        What each says, the warm one last.
    virtual : str or None
        Where, if not on a real board.
    """

    folder: Path
    networks: tuple[MeasuredNetwork, ...]
    graph: Graph
    virtual: str | None


def measure(model: File, board: str, options: MeasureOptions | None = None, *,
            watcher: Watcher | None = None) -> Measured:
    """Measure a network on a board, or on this machine: raw samples and what they say.

    Parameters
    ----------
    model : str or path
        A model file or a network of the zoo.
    board : str
        Name or file of the board, or "host".
    options : MeasureOptions, optional
        How, and on what; by default on the board that is plugged in.
    watcher : Watcher, optional
        Called with progress and warnings.

    Returns
    -------
    Measured
        Every layer's cycles, time, counters and bottleneck; samples are in its folder.

    Raises
    ------
    UsageError
        When options contradict each other, or the folder holds a measurement.
    LinkError
        When the board does not answer.
    """
    options = aim(board, options, reads_image=options is not None and not options.probe)
    watcher = watcher or Watcher()
    if options.resume and options.output is None:
        raise UsageError("--resume needs the -o DIR of a network's measurement")
    machine = find_machine(board, options)
    graph = read_model(fspath(model))
    name = machine.name if machine is not None else HOST
    folder = Path(options.output) if options.output else Path(
        "out") / "measurements" / f"{graph.name}-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    with claim_folder(folder), bound_to(options.cpu):
        if not _has_started(folder, options.resume) and options.resume:
            watcher.remark(f"{folder}: nothing was kept to resume; started again")
        if options.resume:
            _check_resumed(folder, graph, machine, options, watcher)
        data = None if options.input_file is None else _read_input(Path(options.input_file), graph)
        if options.probe:
            from twin.api.commands.listening import listen_to_probe

            heard = listen_to_probe(fspath(model), graph, machine, options, folder, watcher)
            return Measured(folder=folder, networks=(heard,), graph=graph, virtual=None)
        if options.backend is not None:
            return _time_backend(graph, options, folder, data, watcher)
        networks = _collect(Run(graph=graph, board=machine, options=options, folder=folder,
                                data=data, watcher=watcher))
    return Measured(folder=folder, networks=networks, graph=graph, virtual=options.virtual)


def _time_backend(graph: Graph, options: MeasureOptions, folder: Path, data: bytes | None,
                  watcher: Watcher) -> Measured:
    """Time the network on a back end of this machine; runs of an interpreter have no layers."""
    from twin.api.commands.backends import measure_backend
    from twin.attribution.measured_layers import describe_network, find_limits, judge_network

    assert options.backend is not None
    found = measure_backend(graph, options.backend, folder, data=data, runs=options.runs or 100,
                            warmup=options.warmup)
    network = describe_network(found, graph, find_limits(None))
    for finding in judge_network(network, widths={}):
        watcher.remark(f"warm: {finding}")
    return Measured(folder=folder, networks=(network,), graph=graph, virtual=HOST)


def _collect(run: Run) -> tuple[MeasuredNetwork, ...]:
    """Make the runs; where they end early, say what there is if any came."""
    folder, before = run.folder, _count_bytes(run.folder)
    fresh = {one.name for one in folder.iterdir()} <= {CLAIM}
    try:
        return run.measure()
    except BaseException:
        if _count_bytes(folder) > before:
            run.watcher.keep(folder, True)
        elif fresh:  # an image and no sample: the same command is to work again
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _count_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*/samples.jsonl"))


def _check_resumed(folder: Path, graph: Graph, machine: Board | None,
                   options: MeasureOptions, watcher: Watcher) -> None:
    """Refuse to resume a measurement of something else, before anything is built.

    What an emulated board is follows from its file; of a real one another file is only noted.
    """
    board = machine.name if machine is not None else HOST
    now = None if machine is None else hash_board(machine)
    for header in read_started(folder):
        then = header.facts.get(BOARD_HASH)
        if other := tell_other_file(board, then, now):
            if options.virtual is not None:
                raise UsageError(f"{folder}: cannot be resumed: the board's file: {other}; "
                                 "an emulated board is what its file says: give another -o")
            watcher.remark(f"{header.temperature}: board file: {other}")
        clocks = header.clocks
        then_hz, now_hz = clocks.get("cpu"), options.clock_hz  # Asked of a virtual board's alone.
        if options.virtual is None or not then_hz or not now_hz or (
                abs(then_hz / now_hz - 1) <= SAME_CLOCK):
            then_hz = now_hz = 0.0
        refuse_other(folder, (
            ("model", header.model, graph.name),
            ("model's content", str(header.model_sha256)[:12], str(graph.sha256)[:12]),
            ("board", header.board, board),
            ("core's clock", f"{then_hz * 1e-6:g} MHz", f"{now_hz * 1e-6:g} MHz")))


def _has_started(folder: Path, resume: bool) -> bool:
    """Whether a folder holds a measurement; one that is not to be resumed is refused."""
    started = any((folder / part / "header.json").exists() for part in ("cold", "warm"))
    if started and not resume:
        raise UsageError(f"{folder} holds a measurement, and none is written over; give another "
                         "-o, or --resume to resume it")
    return started


def _read_input(path: Path, graph: Graph) -> bytes:
    """Read the network's input, and refuse another length before anything is built."""
    from twin.program.image.compile.verification import random_input

    wanted = random_input(graph).nbytes
    with reworded(OSError, UsageError,
                  f"{path}: cannot be read (",
                  f"); accepted: a file of {wanted} bytes"):
        data = read_regular(path, max(1 << 24, wanted))
    if len(data) != wanted:
        raise UsageError(f"{path}: has {len(data)} bytes; {graph.name} takes {wanted}")
    return data


def fold_stacks(measured: Measured) -> tuple[list[str], str | None]:
    """Return where the time goes as folded stacks, and what they lack.

    Parameters
    ----------
    measured : Measured
        Of `measure`.

    Returns
    -------
    tuple of (list of str, str or None)
        One line per stack: frames by semicolon, then its weight. Layers as measured; on the host
        functions, where py-spy is installed, and else a warning.
    """
    sampled = measured.virtual == HOST
    if sampled:
        from twin.program.image.compile.profile import find_profiler, sample_stacks

        if find_profiler() is not None:
            return sample_stacks(measured.graph), None
    network = measured.networks[-1]
    model = network.measurement.header.model
    return [f"{model};{layer.op};{layer.index} {layer.name.replace(';', ',')} {layer.p50:.0f}\n"
            for layer in network.layers], (
        "the flamegraph shows layers only; functions need py-spy: pip install py-spy"
        if sampled else None)
